#!/bin/bash
# The Rust tests with their C part under a sanitizer: rust.sh address|undefined|thread TEST...
# Rust's own code is not instrumented, which a stable compiler can not do. So ThreadSanitizer sees the threads, but not
# what Rust's own locks order, nor Rust's plain reads and writes; what it would see of them are the calls of memcpy and
# such, which it takes for races. Those calls are not looked at under `thread`, C's among them: the C tests look at
# those. Everything else that C reads and writes is, and no report is suppressed.
set -euo pipefail
cd "$(dirname "$0")/../.."

sanitizer=$1
shift
export C_OPTION=-fsanitize=$sanitizer
triple=$(rustc -vV | sed -n 's/^host: //p')
flags="$C_OPTION -fno-omit-frame-pointer -g -O1"
if [ "$sanitizer" = undefined ]; then flags="$flags -fno-sanitize-recover=all"; fi
# For the target alone: build scripts are programs of the compiler's.
export "CFLAGS_${triple//-/_}=$flags"
export RUSTFLAGS="-C linker=$PWD/tests/sanitizers/link_c.sh -C linker-flavor=gcc"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/sanitizer-$sanitizer
# As for the C tests: see tests/c/run.sh.
export TSAN_OPTIONS="ignore_interceptors_accesses=1:halt_on_error=1:second_deadlock_stack=1:atexit_sleep_ms=50 ${TSAN_OPTIONS:-}"
export ASAN_OPTIONS="detect_leaks=1:halt_on_error=1:intercept_tls_get_addr=0 ${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1 ${UBSAN_OPTIONS:-}"
export RDM_DRIVER=sim

tests=()
for test in "$@"; do tests+=(--test "$test"); done
"${CARGO:-cargo}" test --quiet --target "$triple" --features rocm "${tests[@]}"
echo "rust under $sanitizer: $# test programs passed"
