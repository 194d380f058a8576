#!/bin/bash
# The library's exit handler and a runtime's own: exit_order.sh CC STATIC_LIBRARY BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."

cc=$1
library=$2
build=$3
mkdir -p "$build"
build=$(cd "$build" && pwd)
unset RDM_CUDART_LIBRARY ROCM_PATH LD_LIBRARY_PATH

"$cc" -std=c11 -w -shared -fPIC -Icsrc -o "$build/libamdhip64.so.7" tests/c/fake_hip.c -Wl,-soname,libamdhip64.so.7 \
  -DFAKE_VERSION=70100000 -DFAKE_WITH_COMPILER -DFAKE_EXIT
"$cc" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -O1 -g -Icsrc/include tests/c/exit_order.c "$library" \
  -o "$build/exit_order" -pthread -ldl -lm

passed=0
failed=0
for case in used probed; do
  if RDM_DRIVER=hip RDM_HIP_LIBRARY=$build/libamdhip64.so.7 RDM_CACHE_DIR='' "$build/exit_order" $case; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: exit_order $case"
  fi
done
echo "exit_order: $passed passed, $failed failed"
[ "$failed" = 0 ]
