#!/bin/bash
# Holds a shared library and its header against the ABI that is committed: check.sh CC SHARED_LIBRARY INCLUDE_FOLDER
# COMMITTED_FOLDER WORK_FOLDER. Fails where a program that was built with the committed ABI could break, unless the
# version says that this is another one. What was added is told, and does not fail.
set -euo pipefail
folder=$(dirname "$0")
. "$folder/common.sh"

cc=$1
library=$2
include=$3
committed=$4
work=$5
mkdir -p "$work"
breaks=0
additions=0

complain() {
  echo "abi: breaks: $1"
  breaks=$((breaks + 1))
}

tell() {
  echo "abi: new: $1"
  additions=$((additions + 1))
}

version=$(header_version "$include")
old_version=$(committed_version "$committed/symbols.txt")

# The symbols and their versions.
grep -v '^#' "$committed/symbols.txt" | LC_ALL=C sort > "$work/symbols.old"
nm -D --defined-only "$library" | awk '$2 == "T" { sub(/@@?/, " ", $3); print $3 }' | LC_ALL=C sort > "$work/symbols.new"
while read -r name node; do
  now=$(awk -v name="$name" '$1 == name { print $2 }' "$work/symbols.new")
  if [ -z "$now" ]; then
    complain "function $name is gone"
  elif [ "$now" != "$node" ]; then
    complain "function $name has the symbol version $now, and had $node"
  fi
done < "$work/symbols.old"
while read -r name node; do tell "function $name, $node"; done < <(
  LC_ALL=C join -v 2 "$work/symbols.old" "$work/symbols.new")

# Sizes, offsets, constants and what the header says of types.
"$folder/layout.sh" "$cc" c11 "$include" "$work/layout" > "$work/layout.new"
[ "$(grep -c '^function ' "$work/layout.new")" = "$(declared_functions "$include" | wc -l)" ] ||
  { echo 'abi: a declaration of the header was not understood'; exit 2; }
: > "$work/grown"
while IFS=': ' read -r what text; do
  # Told above, with its symbol.
  case $text in "function "*" is gone") continue ;; esac
  case $what in
    break) complain "$text" ;;
    added) [[ $text == "function "* ]] || tell "$text" ;;
    grown)
      tell "struct $text has grown"
      # What is added at the end of such a struct is no difference to the comparison of types below; what else
      # changes in it is.
      printf '[suppress_type]\n  name = %s\n  type_kind = struct\n  has_data_member_inserted_at = end\n' "$text" >> "$work/grown"
      ;;
  esac
done < <(awk -f "$folder/compare_layout.awk" "$committed/layout.txt" "$work/layout.new")

# The types of all arguments, results and fields, as they were compiled. Exit bits: 1 and 2 it did not work, 4 something differs.
code=0
abidiff --exported-interfaces-only --no-added-syms --no-show-locs --drop-private-types --headers-dir2 "$include" \
  --suppressions "$work/grown" "$committed/librocm_device_map.abi" "$library" > "$work/types" 2>&1 || code=$?
if ((code & 3)); then
  cat "$work/types"
  echo "abi: abidiff failed with $code"
  exit 2
fi
if ((code & 4)); then
  cat "$work/types"
  complain 'the types differ, as shown above'
fi

count() { grep -c "^$1" "$work/layout.new"; }
echo "abi: $(wc -l < "$work/symbols.new") functions, $(count struct) structs, $(count field) fields," \
  "$(count constant) constants against ABI $old_version: $breaks breaks, $additions additions"
if ((breaks > 0)); then
  old_promise=$(promise "$old_version")
  new_promise=$(promise "$version")
  if [ "$new_promise" = "$old_promise" ] || [ "$(printf '%s\n%s\n' "$old_promise" "$new_promise" | sort -V | tail -n 1)" = "$old_promise" ]; then
    cat <<END
abi: a program that was built with $old_version would break. Keep what was there and add something new beside it. Or, where
abi: the break is meant, raise RDM_VERSION_$([[ $version == 0.* ]] && echo MINOR || echo MAJOR) and run \`make abi-update\`; docs/abi.md says what that means.
END
    exit 1
  fi
  echo "abi: version $version is another ABI than $old_version, so this may be; run \`make abi-update\`"
elif ((additions > 0)); then
  echo 'abi: nothing breaks; run `make abi-update` to commit what is new'
elif [ "$version" != "$old_version" ]; then
  echo "abi: nothing differs; run \`make abi-update\` to say that $version has it too"
fi
