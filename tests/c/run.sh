#!/bin/bash
# Runs the C test programs of one build folder, or one of them: run.sh FOLDER [long | PROGRAM [ARGUMENT...]]
set -uo pipefail

folder=$1
length=${2:-short}

# A report of a sanitizer ends the process that it is about, so that the test that started it fails.
# ThreadSanitizer would wait for a second at each exit. The leak checker of gcc 12 crashes on the thread-local variables
# of libraries that were loaded later, which the simulated driver's kernels have.
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:atexit_sleep_ms=50 ${TSAN_OPTIONS:-}"
export ASAN_OPTIONS="detect_leaks=1:halt_on_error=1:intercept_tls_get_addr=0 ${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1 ${UBSAN_OPTIONS:-}"
export RDM_DRIVER=sim
# The user's cache of compiled kernels is not for tests.
export RDM_CACHE_DIR=

failed=()
run() {
  echo "== $*"
  "$folder/$1" "${@:2}" || failed+=("$*")
}

case $length in
  short)
    run stress 2 8 16
    run stress 4 16 4
    run bad_input
    run concurrency
    run module_cache
    run exit_process
    run other_code_test
    run cuda_context_test
    # Under a sanitizer a tenth of the failures each; of what waits those alone that do not wait for a watchdog.
    case $folder in
      */plain) run injection && run wait ;;
      */tsan) run injection brief && run wait ;;
      *) run injection brief && run wait deadline ;;
    esac
    run sim_driver_test
    run driver_conformance sim
    ;;
  long)
    export RDM_TEST_LONG=1
    run wait
    run exit_process
    run injection long
    run stress 2 8 500
    run stress 8 32 50
    for ((i = 0; i < 10; i++)); do
      run concurrency
      run module_cache
    done
    ;;
  *)
    run "${@:2}"
    ;;
esac

if ((${#failed[@]} > 0)); then
  for program in "${failed[@]}"; do echo "failed in $folder: $program"; done
  exit 1
fi
