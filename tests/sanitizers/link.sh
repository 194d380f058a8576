#!/bin/bash
# The linker of Rust programs whose C part is built with a sanitizer of gcc, named by SANITIZER. Without the option by
# which rustc leaves out the compiler's own libraries, so that the sanitizer's is linked, and first.
arguments=()
for argument in "$@"; do
  [ "$argument" = -nodefaultlibs ] || arguments+=("$argument")
done
exec "${CC:-gcc}" "-fsanitize=$SANITIZER" "${arguments[@]}"
