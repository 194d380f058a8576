#!/bin/bash
# Runs the C and C++ examples: run.sh BUILD_FOLDER, where make has put them.
# The overlay and the raw HIP code on simulated GPUs; then what the examples check is taken away from them, one thing at
# a time, and they have to notice; then the raw HIP code as it is built for AMD, which says here what it lacks.
set -euo pipefail

build=$1
passed=0
export RDM_CACHE_DIR=
unset RDM_SIM_DEVICES RDM_SIM_INJECT HIP_ON_DRIVER_DROPS

fail() {
  echo "examples: $1"
  exit 1
}

# expect STATUS TEXT COMMAND...: the last line is the text, a pattern, and the exit status that one.
expect() {
  local status=$1 text=$2 rc=0 output
  shift 2
  output=$(timeout 120 "$@" 2>&1) || rc=$?
  [[ $rc == "$status" && ${output##*$'\n'} == $text ]] ||
    fail "$* ended with $rc and not $status, or not with '$text':"$'\n'"$output"
  passed=$((passed + 1))
}

RDM_DRIVER=sim expect 0 'overlay: 8 threads, 80000 values right, 80 handlers, 0 failed' "$build/overlay"
RDM_DRIVER=sim expect 0 'overlay: 8 threads, 80000 values right, 80 handlers, 0 failed' "$build/overlay_tsan"
RDM_DRIVER=sim RDM_SIM_DEVICES=0 expect 77 'overlay: skipped, *' "$build/overlay"

export RDM_DRIVER=sim
expect 0 'raw_hip: 4 ways to share, 16384 values right' "$build/raw_hip_on_driver"
expect 77 'raw_hip: skipped, *' env RDM_SIM_DEVICES=0 "$build/raw_hip_on_driver"

# dropped CALL PLACE: without that call the values of that place are wrong.
dropped() {
  expect 1 "raw_hip: $2: * values are right" env HIP_ON_DRIVER_DROPS="$1" "$build/raw_hip_on_driver"
}
dropped hipMemcpyAsync:1 'raw calls on our stream'
dropped hipMemcpyAsync:2 'raw calls on our stream'
dropped hipStreamWaitEvent:1 'their stream waits for our event'
dropped hipMemcpyAsync:3 'their stream waits for our event'
dropped hipEventRecord:1 'our streams wait for their event'
dropped hipStreamWaitEvent:2 'our streams wait for their event'
dropped hipEventRecord:2 'their event, recorded on our stream'
dropped hipStreamWaitEvent:3 'their event, recorded on our stream'

# Linked with AMD's own runtime. What the environment chooses is not its driver: it calls HIP itself.
if [[ -e $build/raw_hip ]]; then
  rc=0
  output=$(timeout 120 "$build/raw_hip" 2>&1) || rc=$?
  case $rc in
    0) [[ ${output##*$'\n'} == 'raw_hip: 4 ways to share, 16384 values right' ]] || fail "$output" ;;
    77) [[ ${output##*$'\n'} == 'raw_hip: skipped, '* ]] || fail "$output" ;;
    *) fail "raw_hip ended with $rc: $output" ;;
  esac
  passed=$((passed + 1))
  echo "${output##*$'\n'}" | cut -c 1-160
else
  echo 'examples: raw_hip was not linked with libamdhip64, which is not installed'
fi
echo "examples: $passed passed, 0 failed"
