#!/bin/bash
# The linker's version script for the shared library: version_script.sh SYMBOLS INCLUDE_FOLDER
# One node for each version that brought functions, the oldest first. What the header does not declare stays inside.
set -euo pipefail
folder=$(dirname "$0")

lines=$("$folder/symbol_versions.sh" "$1" "$2")
previous=
while read -r node; do
  echo "$node {"
  echo '  global:'
  awk -v node="$node" '$2 == node { print "    " $1 ";" }' <<< "$lines"
  if [ -z "$previous" ]; then
    echo '  local:'
    echo '    *;'
  fi
  echo "}${previous:+ $previous};"
  previous=$node
done < <(cut -d' ' -f2 <<< "$lines" | sort -uV)
