#!/bin/sh
# Builds hip_runtime_test and runs it against AMD's installed runtime, and against HIP 6.4 unpacked from a later Debian
# suite where that can be had.
#
#   tests/c/hip_runtime_test.sh [BUILD_FOLDER]      (default: target/hip_runtime)
#
# The newer runtime needs a newer C library than this system may have, so that test is linked to the one beside it.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${1:-$root/target/hip_runtime}
mkdir -p "$build"
build=$(cd "$build" && pwd)

# link OUTPUT [LINK_OPTION...]
link() {
  output=$1
  shift
  (cd "$root" && ${CC:-cc} -std=c11 -D_GNU_SOURCE -DRDM_DRIVER_HIP -O1 -g -Wall -Wextra -Wpedantic -Icsrc \
    -Icsrc/include tests/c/hip_runtime_test.c csrc/driver/hip.c csrc/driver/hip_library.c csrc/driver/hip_compiler.c \
    csrc/driver/loader.c csrc/driver/no_compiler.c csrc/status.c -o "$output" -pthread -ldl "$@")
}

link "$build/hip_runtime_test"
"$build/hip_runtime_test"

suite=forky
if reason=$("$root/tests/headers/fetch.sh" --with-dependencies "$suite" "$build/$suite" libamdhip64-6 libhiprtc6 \
  libhiprtc-builtins6); then
  libraries=$build/$suite/root/usr/lib/x86_64-linux-gnu
  link "$build/hip_runtime_test_$suite" -Wl,--dynamic-linker="$libraries/ld-linux-x86-64.so.2"
  LD_LIBRARY_PATH=$libraries RDM_HIP_LIBRARY=$libraries/libamdhip64.so.6 "$build/hip_runtime_test_$suite"
  # The same without the explicit path: the loader's own search has to find it.
  LD_LIBRARY_PATH=$libraries "$build/hip_runtime_test_$suite" --processes 5 >"$build/search.log" || {
    cat "$build/search.log"
    exit 1
  }
  grep -q 'HIP 6\.' "$build/search.log"
  tail -n 1 "$build/search.log"
else
  echo "SKIPPED: the runtime of Debian $suite: ${reason:-no reason given}"
fi
