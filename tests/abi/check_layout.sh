#!/bin/bash
# Every public struct has in C11 and in C++17 the sizes and offsets that are committed: check_layout.sh CC CXX
# WORK_FOLDER. What is not committed yet is for abi/check.sh to tell. tests/abi_layout.rs does the same for Rust.
set -euo pipefail
cd "$(dirname "$0")/../.."

abi/layout.sh "$1" c11 csrc/include "$3/c" > "$3.c11"
abi/layout.sh "$2" c++17 csrc/include "$3/cxx" > "$3.cxx17"
diff "$3.c11" "$3.cxx17" || { echo 'abi layout: C11 and C++17 differ'; exit 1; }
if awk -f abi/compare_layout.awk abi/layout.txt "$3.c11" | grep '^break'; then
  echo 'abi layout: not as committed in abi/layout.txt'
  exit 1
fi
echo "abi layout: $(wc -l < "$3.c11") sizes, offsets and constants, the same in C11 and C++17, 0 failed"
