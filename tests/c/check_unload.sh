#!/bin/bash
# Unloads the shared library while it is in use, in fresh processes: check_unload.sh CC BUILD_FOLDER TIMES
set -euo pipefail
cd "$(dirname "$0")/../.."

cc=$1
build=$2
times=$3
mkdir -p "$build/unload"
"$cc" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Icsrc/include tests/c/exit_unload.c -pthread -ldl \
  -o "$build/unload/exit_unload"

library=$(realpath "$build/librocm_device_map.so")
for ((run = 1; run <= times; run++)); do
  code=0
  RDM_CACHE_DIR='' timeout 30 "$build/unload/exit_unload" "$library" > "$build/unload/output" 2>&1 || code=$?
  if ((code != 10)) || grep -qv 'bound HIP device' "$build/unload/output"; then
    echo "unload: run $run of $times ended with $code:"
    cat "$build/unload/output"
    exit 1
  fi
done
echo "unload: $times passed, 0 failed"
