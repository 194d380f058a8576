#!/bin/bash
# Runs the C tests of a folder under Valgrind's memcheck, each in a process of its own: valgrind.sh FOLDER [long]
# JOBS at once (2). A test fails where it would without, and on any error or definite leak of its processes. What the
# simulated driver starts to compile kernels is not looked at.
set -uo pipefail
cd "$(dirname "$0")/../.."

# One test: --one LOGS FOLDER PROGRAM ARGUMENTS...
if [ "${1:-}" = --one ]; then
  logs=$(mktemp -d "$2/XXXXXX")
  code=0
  timeout -k 5 600 valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite \
    --errors-for-leak-kinds=definite --trace-children=yes --trace-children-skip='/usr/*,/bin/*' --fair-sched=yes \
    --log-file="$logs/%p" "$3/$4" "${@:5}" > "$logs/output" 2>&1 || code=$?
  # A process that was killed has no exit code of its own, but its errors.
  mapfile -t errors < <(find "$logs" -type f ! -name output -size +0)
  if ((code == 0 && ${#errors[@]} == 0)); then
    echo "ok     ${*:4}"
  else
    echo "FAILED ${*:4}: exit code $code"
    sed 's/^/    /' "$logs/output" "${errors[@]}"
  fi
  exit 0
fi

folder=$1
length=${2:-short}
export RDM_DRIVER=sim RDM_CACHE_DIR= LC_ALL=C

# Left out, since memcheck would report there what the test does on purpose, or what is not so:
left_out='
  # kernels that write where there is nothing, whose signal handler jumps from its own stack back to the thread'\''s
  concurrency --test field_log_10_a_wild_write_of_a_kernel_is_its_devices_fault
  driver_conformance sim --child fault
  driver_conformance sim --child fault_and_other_device
  driver_conformance sim --child fault_on_threads
  driver_conformance sim --child fault_under_waits
  sim_driver_test copy_from_nowhere
  sim_driver_test division_by_zero
  sim_driver_test far_write
  sim_driver_test null_write
  sim_driver_test others_faults_are_forwarded
  sim_driver_test stack_overrun
  sim_driver_test trap
  sim_driver_test write_after_free
  sim_driver_test write_before_the_begin
  sim_driver_test write_past_the_end
  # ended by a signal, as the test wants it
  sim_driver_test own_fault_still_kills
  sim_driver_test sent_signal_still_kills
  # a forked child has no threads of its parent, and what only their stacks held counts as leaked
  concurrency --test field_log_20_a_child_forked_after_first_use_is_refused_at_once_and_the_parent_goes_on
  concurrency --test field_log_20_a_fork_while_every_lock_is_held_does_not_hang
  module_cache --test a_forked_child_keeps_no_turn
  # a bound on time for threads that run side by side, where Valgrind runs one at a time
  module_cache --test a_hit_waits_for_no_compile
'

# In the short form besides each wrong argument and handle: what is shared between threads, and what fails.
short='
  concurrency --test every_device_first_used_by_every_thread_is_built_once
  concurrency --test clearing_commits_open_batches_and_loses_no_work
  concurrency --test a_stream_released_while_others_use_it_is_stale_and_nothing_worse
  concurrency --test an_event_released_while_others_wait_ends_their_waits
  concurrency --test a_pool_is_bounded
  concurrency --test a_thread_that_dies_with_an_open_batch_loses_nothing
  module_cache --test one_key_from_many_threads_is_one_compile_and_one_module
  module_cache --test each_waiter_gets_the_log_of_a_failed_compile
  module_cache --test the_least_recently_used_goes_first
'

listed() { sed -n 's/^  \([a-z]\)/\1/p' <<< "$1"; }
tests_of() { "$folder/$1" --list | sed "s/^/$1 --test /"; }

everything() {
  echo stress 2 4 2
  tests_of bad_input
  tests_of concurrency
  tests_of module_cache
  tests_of wait
  "$folder/driver_conformance" sim --list | sed 's/^/driver_conformance sim --child /'
  "$folder/sim_driver_test" --list | sed 's/^/sim_driver_test /'
}

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
everything | sort > "$logs/all"
listed "$left_out" | sort > "$logs/left_out"
listed "$short" | sort > "$logs/short"
if [ -n "$(cat "$logs/left_out" "$logs/short" | sort | comm -13 "$logs/all" -)" ]; then
  echo 'valgrind: no such test:'
  cat "$logs/left_out" "$logs/short" | sort | comm -13 "$logs/all" -
  exit 1
fi
comm -23 "$logs/all" "$logs/left_out" > "$logs/chosen"
if [ "$length" = short ]; then
  grep -E '^(stress|bad_input) ' "$logs/chosen" | cat - "$logs/short" > "$logs/chosen_short"
  mv "$logs/chosen_short" "$logs/chosen"
fi
xargs -P "${JOBS:-2}" -L 1 "$0" --one "$logs" "$folder" < "$logs/chosen" | tee "$logs/results" | grep -v '^ok '
passed=$(grep -c '^ok ' "$logs/results")
failed=$(grep -c '^FAILED ' "$logs/results")
echo "valgrind, $length: $passed passed, $failed failed, $(wc -l < "$logs/left_out") of $(wc -l < "$logs/all") left out with a reason"
((failed == 0 && passed == $(wc -l < "$logs/chosen")))
