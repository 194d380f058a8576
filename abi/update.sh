#!/bin/bash
# Writes the committed ABI anew, after a check: update.sh CC SHARED_LIBRARY INCLUDE_FOLDER COMMITTED_FOLDER WORK_FOLDER.
# What check.sh fails on is not written. An ABI that nobody has released yet: remove COMMITTED_FOLDER's three files first.
set -euo pipefail
folder=$(dirname "$0")
. "$folder/common.sh"

cc=$1
library=$2
include=$3
committed=$4
work=$5
mkdir -p "$work"
if [ -e "$committed/symbols.txt" ]; then "$folder/check.sh" "$cc" "$library" "$include" "$committed" "$work"; fi

version=$(header_version "$include")
# Made aside, so that a failure leaves what was there.
{
  echo "# ABI $version: its functions, and the version that each came with. Written by \`make abi-update\`."
  "$folder/symbol_versions.sh" "$committed/symbols.txt" "$include"
} > "$work/symbols.txt"
"$folder/layout.sh" "$cc" c11 "$include" "$work/layout" > "$work/layout.txt"
abidw --exported-interfaces-only --no-corpus-path --no-comp-dir-path --no-show-locs --no-parameter-names \
  --no-write-default-sizes --no-elf-needed --drop-private-types --headers-dir "$include" --type-id-style hash \
  --out-file "$work/librocm_device_map.abi" "$library"
for file in symbols.txt layout.txt librocm_device_map.abi; do
  cmp -s "$work/$file" "$committed/$file" || { cp "$work/$file" "$committed/$file"; echo "abi: wrote $committed/$file"; }
done
echo "abi: $committed is the ABI of version $version"
