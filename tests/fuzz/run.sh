#!/bin/bash
# Runs the fuzz targets, replays their corpus, or takes what they found into it.
#
#   run.sh fuzz|corpus|minimise INPUTS SECONDS PROGRAM...
#
# INPUTS is a folder for the inputs that fuzzing finds; SECONDS is for all programs together. A finding ends the run and
# its input stays in INPUTS/findings. Each program starts afresh every minute, since a fault costs its process a device.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mode=$1 inputs=$2 seconds=$3
shift 3
programs=("$@")
round_seconds=60
executions=0
# A finding ends the process by abort, and libFuzzer writes its input from that signal's handler.
export TSAN_OPTIONS=halt_on_error=1:report_signal_unsafe=0:second_deadlock_stack=1
export UBSAN_OPTIONS=print_stacktrace=1
mkdir -p "$inputs/findings"

options_of() {
  local target=$1
  echo "-timeout=30 -max_len=$([[ $target == fuzz_calls ]] && echo 512 || echo 2048)"
  [[ ! -f $here/$target.dict ]] || echo "-dict=$here/$target.dict"
}

# Runs a program for some seconds and adds its executions. Prints all that it wrote where it ended with a finding.
run() {
  local label=$1 log=$inputs/$2.log
  shift 2
  local status=0
  "$@" -print_final_stats=1 "-artifact_prefix=$inputs/findings/" > "$log" 2>&1 || status=$?
  local done_now
  done_now=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  coverage=$(sed -n 's/^#.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
  executions=$((executions + ${done_now:-0}))
  target_executions=$((target_executions + ${done_now:-0}))
  if ((status != 0)) || [[ -z $done_now && $mode != minimise ]]; then
    cat "$log"
    echo "$label: a finding; its input is in $inputs/findings"
    exit 1
  fi
}

begin=$SECONDS
for program in "${programs[@]}"; do
  target=$(basename "$program")
  label=$(basename "$(dirname "$program")")/$target
  corpus=$here/corpus/$target
  found=$inputs/$target
  mkdir -p "$found" "$corpus"
  read -r -a options <<< "$(options_of "$target" | tr '\n' ' ')"
  target_executions=0
  case $mode in
    corpus)
      run "$label" "${label//\//-}" "$program" "${options[@]}" -runs=0 "$corpus"
      ;;
    fuzz)
      left=$((seconds / ${#programs[@]}))
      while ((left > 0)); do
        round=$((left < round_seconds ? left : round_seconds))
        run "$label" "${label//\//-}" "$program" "${options[@]}" -max_total_time="$round" "$found" "$corpus"
        left=$((left - round))
      done
      ;;
    minimise)
      [[ $label == fuzz/* ]] || continue
      # By edges alone, not by how often each was taken: a tenth of the files.
      rm -rf "$inputs/merged"
      mkdir -p "$inputs/merged"
      run "$label" "${label//\//-}" "$program" "${options[@]}" -merge=1 -use_counters=0 "$inputs/merged" "$corpus" "$found"
      rm -rf "$corpus"
      mv "$inputs/merged" "$corpus"
      ;;
    *)
      echo "no such mode: $mode" >&2
      exit 2
      ;;
  esac
  printf '%-28s %9d executions, coverage %s\n' "$label" "$target_executions" "${coverage:-none}"
done
echo "fuzz: $executions executions in $((SECONDS - begin)) s over ${#programs[@]} targets, 0 findings"
