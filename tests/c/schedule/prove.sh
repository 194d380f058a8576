#!/bin/bash
# Takes locks, second looks, broadcasts and memory orders of the real code away, one at a time (the patches
# tests/mutants/schedule_*.patch), and needs the scheduler to find each of them with every seed, and by trying all
# schedules; and with the same seeds to find nothing in the code as it is.
#
#   tests/c/schedule/prove.sh BUILD     with SEEDS and SCHEDULES (of each seed) from the environment
set -euo pipefail

build=$1
seeds=${SEEDS:-20}
schedules=${SCHEDULES:-300}
sound_schedules=${SOUND_SCHEDULES:-25}
root=$PWD
folder=$(mkdir -p "$build/schedule_mutants" && cd "$build/schedule_mutants" && pwd)
output=$folder/output
mutants=0
runs=0

header() {
  sed -n "s/^$2: //p; /^--- /q" "$1"
}

fail() {
  echo "$*" >&2
  exit 1
}

# A copy with the objects of the real code, so that only what the patch changes is compiled.
make_copy() {
  rm -rf "$folder/tree"
  mkdir -p "$folder/tree/tests" "$folder/tree/build"
  cp -a Makefile make csrc "$folder/tree/"
  cp -a tests/c "$folder/tree/tests/"
  cp -a "$build/schedule" "$folder/tree/build/"
}

# The run has to fail, by finding what the patch says.
expect_found() {
  local program=$1 shows=$2
  shift 2
  local code=0
  "$program" "$@" > "$output" 2>&1 || code=$?
  runs=$((runs + 1))
  if [ "$code" != 1 ]; then
    tail -3 "$output"
    fail "not found: $*"
  fi
  grep -q -E "$shows" "$output" || { head -3 "$output"; fail "found something else than '$shows': $*"; }
}

scenarios=
for patch in tests/mutants/schedule_*.patch; do
  name=$(basename "$patch" .patch)
  read -r _ scenario <<< "$(header "$patch" Kill)"
  shows=$(header "$patch" Shows)
  make_copy
  patch --quiet --strip=1 --directory="$folder/tree" < "$patch" || fail "$name does not apply"
  make --no-print-directory -C "$folder/tree" -j"${JOBS:-2}" BUILD=build SCHEDULE_MORE="$(header "$patch" Flags)" \
    build/schedule/schedules > "$output" 2>&1 || { tail -20 "$output"; fail "$name does not compile"; }
  program=$folder/tree/build/schedule/schedules
  expect_found "$program" "$shows" --full 5000 --bound -1 --schedules 0 "$scenario"
  # What it printed leads there again.
  choices=$(sed -n "s/^To see it again: schedules --replay $scenario '\(.*\)'$/\1/p" "$output")
  expect_found "$program" "$shows" --replay "$scenario" "$choices"
  for seed in $(seq "$seeds"); do
    expect_found "$program" "$shows" --full 0 --bound -1 --schedules "$schedules" --seed "$seed" "$scenario"
  done
  echo "$name: found by all schedules, by replay, and with $seeds of $seeds seeds: $shows"
  scenarios="$scenarios $scenario"
  mutants=$((mutants + 1))
done

cd "$root"
for seed in $(seq "$seeds"); do
  # shellcheck disable=SC2086 # a list of names
  "$build/schedule/schedules" --full 0 --bound -1 --schedules "$sound_schedules" --seed "$seed" $scenarios > "$output" 2>&1 ||
    { cat "$output"; fail "the real code fails"; }
done
echo "the real code: nothing found with $seeds of $seeds seeds"
rm -rf "$folder"
echo "schedule mutants: $mutants killed in $runs of $runs runs, 0 survived"
