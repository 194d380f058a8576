#!/bin/bash
# The check of the ABI can fail: check_breaks.sh CC BUILD_FOLDER. Makes copies of the library, each with one change, and
# sees what abi/check.sh says of it. A copy compiles one file of its own and has the objects of BUILD_FOLDER for the rest.
set -euo pipefail
cd "$(dirname "$0")/../.."

cc=$1
build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# A copy with one change: change NAME FILE HEADER_SED FILE_SED
change() {
  local copy=$work/$1 file=$2 objects
  mkdir -p "$copy"
  cp -r csrc "$copy/csrc"
  sed -i "$3" "$copy/csrc/include/rocm_device_map.h"
  sed -i "$4" "$copy/csrc/$file"
  if diff -r csrc "$copy/csrc" > /dev/null; then echo "abi breaks: $1 changed nothing"; exit 1; fi
  "$cc" -std=c11 -D_GNU_SOURCE -fvisibility=hidden -pthread -DRDM_DRIVER_HIP -DRDM_DRIVER_CUDA -O1 -g -DNDEBUG -fPIC \
    -I"$copy/csrc" -I"$copy/csrc/include" -c "$copy/csrc/$file" -o "$copy/changed.o"
  mapfile -t objects < <(find "$build/lib/csrc" -name '*.o' ! -path "*/csrc/${file%.c}.o")
  abi/version_script.sh abi/symbols.txt "$copy/csrc/include" > "$copy/map"
  "$cc" -shared -Wl,-soname,librocm_device_map.so.0 -Wl,-z,nodelete -Wl,--version-script="$copy/map" "$copy/changed.o" \
    "${objects[@]}" -o "$copy/library.so" -pthread -ldl -lm
}

# What the check has to say of a copy: expect NAME EXIT_CODE TEXT...
expect() {
  local name=$1 code=$2 got=0 text
  abi/check.sh "$cc" "$work/$name/library.so" "$work/$name/csrc/include" abi "$work/$name/check" \
    > "$work/$name/output" 2>&1 || got=$?
  if ((got == code)); then
    for text in "${@:3}"; do
      grep -qe "$text" "$work/$name/output" || { echo "abi breaks: $name: nothing said of '$text'"; got=-1; }
    done
  fi
  if ((got == code)); then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "abi breaks: $name: the check ended with $got, and should have with $code:"
    cat "$work/$name/output"
  fi
}

read -r major minor patch < <(sed -n 's/^#define RDM_VERSION_[MP][A-Z]* //p' csrc/include/rocm_device_map.h | xargs)
if ((major == 0)); then other="s/\(VERSION_MINOR\) $minor/\1 $((minor + 1))/"; else other="s/\(VERSION_MAJOR\) $major/\1 $((major + 1))/"; fi
patched="s/\(VERSION_PATCH\) $patch/\1 $((patch + 1))/"
# A function that leaves the library becomes one that does not.
hide='s/rdm_clear_encoders(void)/rdm__clear_encoders_hidden(void)/'
hide_declaration='s/^RDM_API rdm_status rdm_clear_encoders(void)/rdm_status rdm__clear_encoders_hidden(void)/'
add='s/^RDM_API rdm_status rdm_clear_encoders(void);/&\nRDM_API rdm_status rdm_added(void);/'
define='$a rdm_status rdm_added(void) { return RDM_OK; }'
same='s/^$//'

change function_gone stream_encoder.c "$hide_declaration" "$hide"
expect function_gone 1 'function rdm_clear_encoders is gone' 'would break' 'make abi-update'

change function_gone_in_a_patch stream_encoder.c "$hide_declaration; $patched" "$hide"
expect function_gone_in_a_patch 1 'function rdm_clear_encoders is gone'

change function_gone_in_another_abi stream_encoder.c "$hide_declaration; $other" "$hide"
expect function_gone_in_another_abi 0 'function rdm_clear_encoders is gone' 'so this may be'

change argument_type memory.c 's/^\(RDM_API rdm_status rdm_memory_allocate(rdm_device [a-z]*, \)size_t/\1uint32_t/' \
  's/^\(rdm_status rdm_memory_allocate(rdm_device [a-z]*, \)size_t/\1uint32_t/'
expect argument_type 1 'rdm_memory_allocate' 'typedef name changed from size_t to uint32_t'

change result_type status.c 's/^RDM_API uint32_t rdm_version(/RDM_API int32_t rdm_version(/' \
  's/^uint32_t rdm_version(/int32_t rdm_version(/'
expect result_type 1 'function rdm_version uint32_t (void), now function rdm_version int32_t (void)'

# A field between others, in a struct that tells its size.
change field_between sim_control.c 's/^  uint64_t modules;/  uint64_t queues;\n&/' "$same"
expect field_between 1 'field rdm_sim_objects.modules offset 24 size 8 type uint64_t, now field rdm_sim_objects.modules offset 32'

# A field at the end of one that does not.
change field_in_fixed_struct sim_control.c 's/^} rdm_sim_call;/  uint64_t extra;\n&/' "$same"
expect field_in_fixed_struct 1 'struct rdm_sim_call size 48 align 8, now struct rdm_sim_call size 56'

# A field where callers of the old struct have padding that they never set.
change field_in_padding runtime.c 's/^  int32_t sim_device_count;/&\n  int32_t extra;/' "$same"
expect field_in_padding 1 'field rdm_config.extra is new inside'

# The same size and place, and another type.
change field_type device.c 's/^  int32_t multiprocessor_count;/  uint32_t multiprocessor_count;/' "$same"
expect field_type 1 'multiprocessor_count offset 16 size 4 type int32_t, now '

change field_type_in_grown_struct device.c \
  's/^  int32_t multiprocessor_count;/  uint32_t multiprocessor_count;/; s/^} rdm_device_info;/  uint64_t extra;\n&/' "$same"
expect field_type_in_grown_struct 1 'struct rdm_device_info has grown' 'multiprocessor_count offset 16 size 4 type int32_t'

change constant_value status.c 's/RDM_ERROR_TIMEOUT = 13,/RDM_ERROR_TIMEOUT = 33,/' "$same"
expect constant_value 1 'constant RDM_ERROR_TIMEOUT 13, now constant RDM_ERROR_TIMEOUT 33'

change function_added stream_encoder.c "$add" "$define"
expect function_added 0 "function rdm_added, RDM_$major.$minor.$patch" 'nothing breaks; run .make abi-update'

change function_added_later stream_encoder.c "$add; $patched" "$define"
expect function_added_later 0 "function rdm_added, RDM_$major.$minor.$((patch + 1))" 'nothing breaks'

change struct_grown sim_control.c 's/^} rdm_sim_objects;/  uint64_t queues;\n&/' "$same"
expect struct_grown 0 'struct rdm_sim_objects has grown' 'field rdm_sim_objects.queues' 'nothing breaks'

change constant_added status.c 's/RDM_ERROR_RESOURCE = 27/&,\n  RDM_ERROR_NEW = 28/' "$same"
expect constant_added 0 'constant RDM_ERROR_NEW' 'nothing breaks'

# A program linked with this ABI meets the library of another one, under the same soname while the version is 0.x: the
# loader refuses it by its symbols' version, where it would run into whatever was changed.
cat > "$work/program.c" <<END
#include "rocm_device_map.h"
int main(void) { return rdm_version_string()[0] == 0; }
END
"$cc" -Icsrc/include "$work/program.c" -L"$build" -lrocm_device_map -o "$work/program"
soname=$(readelf -dW "$build/librocm_device_map.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
mkdir "$work/libraries"
for name in function_added function_gone_in_another_abi; do
  cp "$work/$name/library.so" "$work/libraries/$soname"
  code=0
  LD_LIBRARY_PATH=$work/libraries "$work/program" > "$work/output" 2>&1 || code=$?
  if { [ $name = function_added ] && ((code == 0)); } ||
    { [ $name != function_added ] && ((code != 0)) && grep -q "version .RDM_$major.$minor.* not found" "$work/output"; }; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "abi breaks: a program of this ABI with the library of $name ended with $code:"
    cat "$work/output"
  fi
done

echo "abi breaks: $passed passed, $failed failed"
((failed == 0))
