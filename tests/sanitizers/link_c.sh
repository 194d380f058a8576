#!/bin/bash
# The linker of Rust programs whose C part is built with an option of gcc that needs a library of gcc's: a sanitizer, or
# the counting of what runs. The option is C_OPTION. Without the option by which rustc leaves out the compiler's own
# libraries, so that this one is linked, and first.
arguments=()
for argument in "$@"; do
  [ "$argument" = -nodefaultlibs ] || arguments+=("$argument")
done
exec "${CC:-gcc}" "$C_OPTION" "${arguments[@]}"
