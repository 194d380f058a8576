#!/bin/bash
# The function that each symbol version belongs to: symbol_versions.sh SYMBOLS INCLUDE_FOLDER
# Prints a line "FUNCTION RDM_X.Y.Z" for each function of the header: the version that it came with, as committed in
# SYMBOLS; the header's own version for a function that is not there yet, and for all of them once the version says that
# the ABI is another one, so that the loader refuses a program that was linked with the old one.
set -euo pipefail
. "$(dirname "$0")/common.sh"

symbols=$1
include=$2
version=$(header_version "$include")
known=/dev/null
if [ -e "$symbols" ]; then
  committed=$(committed_version "$symbols")
  if [ "$(promise "$version")" = "$(promise "$committed")" ]; then known=$symbols; fi
fi
declared_functions "$include" | awk -v node="RDM_$version" -v known="$known" '
  BEGIN { while ((getline line < known) > 0) if (split(line, word, " ") == 2 && word[1] != "#") of[word[1]] = word[2] }
  { print $1, $1 in of ? of[$1] : node }'
