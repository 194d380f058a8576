#!/bin/bash
# The header as C11 and as C++17, and programs that use the library, one that loads it as it runs among them:
# check_header.sh CC CXX BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."

cc=$1
cxx=$2
build=$3
warnings="-Wall -Wextra -Wpedantic -pedantic-errors -Werror -Wconversion -Wundef"
mkdir -p "$build/header"

# shellcheck disable=SC2086
{
  "$cc" -std=c11 $warnings -Wstrict-prototypes -Icsrc/include tests/c/header_c11.c -pthread \
    "$build/librocm_device_map.a" -ldl -lm -o "$build/header/c11"
  "$cc" -std=c11 $warnings -Icsrc/include tests/c/header_c11.c -pthread \
    -L"$build" -lrocm_device_map -o "$build/header/c11_shared"
  "$cc" -std=c11 $warnings -Icsrc/include tests/c/header_dlopen.c -pthread -ldl -o "$build/header/dlopen"
  "$cxx" -std=c++17 $warnings -Wold-style-cast -Icsrc/include tests/c/header_cxx17.cpp -pthread \
    "$build/librocm_device_map.a" -ldl -lm -o "$build/header/cxx17"
}

passed=0
RDM_DRIVER=sim RDM_CACHE_DIR='' "$build/header/dlopen" "$build/librocm_device_map.so" ||
  { echo "header: dlopen failed"; exit 1; }
passed=$((passed + 1))
for program in c11 c11_shared cxx17; do
  RDM_DRIVER=sim LD_LIBRARY_PATH="$build" "$build/header/$program" || { echo "header: $program failed"; exit 1; }
  passed=$((passed + 1))
done
echo "header: $passed passed, 0 failed"
