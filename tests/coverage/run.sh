#!/bin/bash
# Runs the C tests on a build that counts, and prints what of csrc/ they ran: run.sh BUILD_FOLDER LEAST_LINES
# LEAST_BRANCHES. Fails where a test does, or where less than so many percent ran.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$1
least_lines=$2
least_branches=$3
export COVERAGE_CC=${CC:-gcc}
counting=$PWD/tests/coverage/cc.sh
find "$folder" -name '*.gcda' -delete

# The real drivers' loaders and tables run with stand-ins for the vendors' libraries, and with AMD's own.
all_tests() {
  tests/c/run.sh "$folder" &&
    RDM_DRIVER=sim "$folder/wait" &&
    CC=$counting tests/c/loader_test.sh "$folder/loader" &&
    CC=$counting tests/c/permission_test.sh "$folder/permission" &&
    tests/c/exit_order.sh "$counting" "$folder/librocm_device_map.a" "$folder/exit_order" &&
    CC=$counting tests/c/hip_runtime_test.sh "$folder/hip" &&
    "$folder/driver_conformance" hip &&
    tests/coverage/rust.sh "$folder/rust"
}
all_tests > "$folder/tests.log" 2>&1 || {
  grep -A 5 -e '^FAILED' -e 'failed in' "$folder/tests.log" || tail -n 50 "$folder/tests.log"
  echo "coverage: a test failed; all of the output is in $folder/tests.log"
  exit 1
}

gcovr --root . --filter 'csrc/' --gcov-ignore-parse-errors --csv "$folder/coverage.csv" "$folder" > "$folder/gcovr.log" 2>&1 || {
  cat "$folder/gcovr.log"
  exit 1
}
awk -F, -v least_lines="$least_lines" -v least_branches="$least_branches" '
  function percent(part, whole) { return whole == 0 ? 100 : 100 * part / whole }
  NR == 1 { printf "%-40s %15s %19s\n", "file", "lines", "branches"; next }
  {
    printf "%-40s %5d/%-5d %3.0f%% %7d/%-5d %3.0f%%\n", $1, $3, $2, percent($3, $2), $6, $5, percent($6, $5)
    lines += $2; lines_run += $3; branches += $5; branches_run += $6
  }
  END {
    of_lines = percent(lines_run, lines)
    of_branches = percent(branches_run, branches)
    failed = NR < 2 || of_lines < least_lines || of_branches < least_branches
    if (failed) printf "coverage: should be at least %s%% of lines and %s%% of branches\n", least_lines, least_branches
    printf "coverage: %.1f%% of lines, %.1f%% of branches\n", of_lines, of_branches
    exit failed
  }' "$folder/coverage.csv"
