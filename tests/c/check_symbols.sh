#!/bin/bash
# What leaves the library: check_symbols.sh STATIC_LIBRARY SHARED_LIBRARY
#  - every global symbol of the static library begins with rdm_;
#  - the symbols with default visibility are the header's functions, all of them and no others, in both libraries;
#  - nothing runs when the library is loaded, and no destructor when the process exits;
#  - the shared library has its soname and is never unloaded;
#  - it asks for no static thread-local storage, which a process that loads it late may not have left.
set -euo pipefail
cd "$(dirname "$0")/../.."

static=$1
shared=$2
failures=0

complain() {
  echo "check_symbols: $1"
  failures=$((failures + 1))
}

# Compares two sorted lists, and complains of each difference.
compare() {
  local name
  while read -r name; do complain "$name is in the header and not in $3"; done < <(comm -23 <(echo "$1") <(echo "$2"))
  while read -r name; do complain "$name leaves $3 and is not in the header"; done < <(comm -13 <(echo "$1") <(echo "$2"))
}

declared=$(sed -n 's/^RDM_API .*\b\(rdm_[a-z0-9_]*\)(.*/\1/p' csrc/include/rocm_device_map.h | sort)
[ "$(grep -c '^RDM_API ' csrc/include/rocm_device_map.h)" = "$(wc -l <<< "$declared")" ] ||
  complain "a declaration of the header was not understood"

defined=$(nm -g --defined-only "$static" | awk 'NF == 3 { print $3 }' | sort)
while read -r name; do
  [[ $name == rdm_* ]] || complain "$name is global in $static"
done <<< "$defined"

visible=$(readelf -sW "$static" | awk '($5 == "GLOBAL" || $5 == "WEAK") && $6 == "DEFAULT" && $7 != "UND" { print $8 }' | sort)
compare "$declared" "$visible" "$static"
# Each with the version that it came with; the versions themselves are listed as absolute symbols.
exported=$(nm -D --defined-only "$shared" | awk '$2 != "A" { print $3 }' | sort)
compare "$declared" "$(sed 's/@@RDM_[0-9.]*$//' <<< "$exported")" "$shared"
[ "$(grep -c '@@RDM_[0-9]*\.[0-9]*\.[0-9]*$' <<< "$exported")" = "$(wc -l <<< "$exported")" ] ||
  complain "a symbol of $shared has no version"

if readelf -SW "$static" | grep -E '\.(init_array|fini_array|ctors|dtors)'; then
  complain "$static runs code when it is loaded or unloaded"
fi
readelf -dW "$shared" | grep -q 'SONAME.*\[librocm_device_map\.so\.0\]' || complain "$shared has another soname"
readelf -dW "$shared" | grep -q 'NODELETE' || complain "$shared can be unloaded"
if readelf -dW "$shared" | grep 'STATIC_TLS'; then complain "$shared asks for static thread-local storage"; fi

echo "check_symbols: $(wc -l <<< "$declared") functions, $(wc -l <<< "$defined") global symbols, $failures complaints"
[ "$failures" = 0 ]
