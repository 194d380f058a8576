#!/bin/bash
# The ABI as a table: layout.sh CC STANDARD INCLUDE_FOLDER WORK_FOLDER. STANDARD is such as c11 or c++17.
# Makes a program of every struct, field, plain type and constant that the header declares, compiles it and prints its
# sizes and offsets. The types of fields and functions are the header's own words: abidiff says nothing of some changes,
# such as int32_t to uint32_t.
set -euo pipefail

cc=$1
standard=$2
include=$3
work=$4
mkdir -p "$work"
header='#include "rocm_device_map.h"'

# The header alone, without comments: one declaration on a line, in the form that clang-format gives it.
"$cc" -E -P -I"$include" -x c -std=c11 - <<< "$header" > "$work/header.i"
"$cc" -E -dM -I"$include" -x c -std=c11 - <<< "$header" > "$work/macros"

{
  echo "$header"
  echo '#include <stddef.h>'
  echo '#include <stdio.h>'
  echo '#ifdef __cplusplus'
  echo '#define ALIGNMENT alignof'
  echo '#else'
  echo '#define ALIGNMENT _Alignof'
  echo '#endif'
  echo 'int main(void) {'
  awk '
    /^typedef struct rdm_[a-z0-9_]* \{/ {
      name = $3
      printf "  printf(\"struct %s size %%zu align %%zu\\n\", sizeof(%s), (size_t)ALIGNMENT(%s));\n", name, name, name
      next
    }
    name && /^}/ { name = ""; next }
    name && /[({:,]/ { print "layout.sh does not understand: " $0 > "/dev/stderr"; failed = 1; exit 1 }
    name && /;/ {
      type = $0
      sub(/;.*/, "", type)
      sub(/^ */, "", type)
      extent = match(type, /(\[[0-9]*\])+$/) ? substr(type, RSTART) : ""
      sub(/(\[[0-9]*\])+$/, "", type)
      field = type
      sub(/.*[ *]/, "", field)
      sub(/ *[a-z0-9_]*$/, "", type)
      printf "  printf(\"field %s.%s offset %%zu size %%zu type %s%s\\n\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n",
        name, field, type, extent, name, field, name, field
      next
    }
    /^typedef [a-z0-9_]* rdm_[a-z0-9_]*;/ {
      sub(/;/, "", $3)
      printf "  printf(\"type %s size %%zu\\n\", sizeof(%s));\n", $3, $3
    }
    END { exit failed }' "$work/header.i"
  {
    grep -o 'RDM_[A-Z0-9_]* = ' "$work/header.i" | cut -d' ' -f1
    # The version is not part of what it is the version of.
    awk '$2 ~ /^RDM_/ && $2 !~ /^RDM_(API|VERSION.*)$/ { print $2 }' "$work/macros" | LC_ALL=C sort
  } | while read -r name; do
    echo "  printf(\"constant $name %lld\\n\", (long long)$name);"
  done
  echo '  return 0;'
  echo '}'
} > "$work/layout.c"

language=c
case $standard in *++*) language=c++ ;; esac
"$cc" -x "$language" -std="$standard" -Wall -Wextra -Werror -I"$include" "$work/layout.c" \
  -o "$work/layout"
"$work/layout"

# Functions and callbacks, without the names of their parameters.
tr -s '\n ' '  ' < "$work/header.i" | tr ';' '\n' |
  sed -En 's/^ *__attribute__\(\(visibility\("default"\)\)\) (.*[ *])(rdm_[a-z0-9_]*)\((.*)\)$/function \2 \1(\3)/p
    s/^ *typedef (.*)\(\*(rdm_[a-z0-9_]*)\)\((.*)\)$/callback \2 \1(\3)/p' |
  sed -E 's/([ *])[a-z0-9_]+([,)])/\1\2/g; s/ ([,)])/\1/g; s/\(\)/(void)/'
