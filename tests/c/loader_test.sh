#!/bin/sh
# Builds stand-ins for AMD's libraries and checks which of them the driver `hip` takes, and what it says of the others.
#
#   tests/c/loader_test.sh [BUILD_FOLDER]      (default: target/loader_test)
#
# Needs no ROCm. The last line is "N passed, M failed".
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${1:-$root/target/loader_test}
rm -rf "$build"
mkdir -p "$build"
build=$(cd "$build" && pwd)
compiler=${CC:-cc}
passed=0
failed=0
unset RDM_HIP_LIBRARY RDM_CUDART_LIBRARY ROCM_PATH LD_LIBRARY_PATH

# fake FILE SONAME [OPTION...]: a library at FOLDER/lib/NAME.
fake() {
  file=$build/$1
  soname=$2
  shift 2
  mkdir -p "$(dirname "$file")"
  "$compiler" -std=c11 -w -shared -fPIC -I"$root/csrc" -o "$file" "$here/fake_hip.c" -Wl,-soname,"$soname" "$@"
}

# expect CASE [ARGUMENT], with the environment of the call.
expect() {
  if "$build/loader_test" "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $*"
  fi
}

(cd "$root" && "$compiler" -std=c11 -D_GNU_SOURCE -DRDM_DRIVER_HIP -DRDM_DRIVER_CUDA -O1 -g -Wall -Wextra -Wpedantic \
  -Icsrc -Icsrc/include tests/c/loader_test.c csrc/driver/hip.c csrc/driver/hip_library.c csrc/driver/hip_compiler.c \
  csrc/driver/cuda.c csrc/driver/cuda_library.c csrc/driver/loader.c csrc/driver/no_compiler.c csrc/status.c \
  -o "$build/loader_test" -pthread -ldl)

for major in 5 6 7; do
  fake "all/lib/libamdhip64.so.$major" "libamdhip64.so.$major" -DFAKE_VERSION="${major}0100000"
  fake "all/lib/libhiprtc.so.$major" "libhiprtc.so.$major" -DFAKE_VERSION="$major" -DFAKE_COMPILER
done
ROCM_PATH=$build/all expect uses all/lib/libamdhip64.so.7
ROCM_PATH=$build/all expect compiler all/lib/libhiprtc.so.7
LD_LIBRARY_PATH=$build/all/lib expect uses all/lib/libamdhip64.so.7
RDM_HIP_LIBRARY=$build/all/lib/libamdhip64.so.6 expect uses all/lib/libamdhip64.so.6
RDM_HIP_LIBRARY=$build/all/lib/libamdhip64.so.6 expect compiler all/lib/libhiprtc.so.6
ROCM_PATH=$build/all expect loaded "$build/all/lib/libamdhip64.so.5"
RDM_HIP_LIBRARY=$build/all/lib/libamdhip64.so.7 expect loaded "$build/all/lib/libamdhip64.so.5"
ROCM_PATH=$build/all expect properties gfx90a:sramecc+:xnack-

# A broken file is passed over, and its reason is kept.
fake some/lib/libamdhip64.so.7 libamdhip64.so.7 -DFAKE_VERSION=70100000 -DFAKE_LACKS_EVENT
fake missing/libmissing_dependency.so libmissing_dependency.so -DFAKE_VERSION=0 -DFAKE_COMPILER
fake some/lib/libamdhip64.so.6 libamdhip64.so.6 -DFAKE_VERSION=60100000 -Wl,--no-as-needed \
  "$build/missing/libmissing_dependency.so"
rm "$build/missing/libmissing_dependency.so"
fake some/lib/libamdhip64.so.5 libamdhip64.so.5 -DFAKE_VERSION=50100000 -DFAKE_WITH_COMPILER -DFAKE_OLD_CALLBACK \
  -DFAKE_OLD_PROPERTIES
ROCM_PATH=$build/some expect skips_broken some/lib/libamdhip64.so.5
ROCM_PATH=$build/some expect compiler some/lib/libamdhip64.so.5
ROCM_PATH=$build/some expect properties gfx1030
ROCM_PATH=$build/some expect old_callback
RDM_HIP_LIBRARY=$build/some/lib/libamdhip64.so.7 expect explicit_symbol some/lib/libamdhip64.so.7
RDM_HIP_LIBRARY=$build/no/such/file expect explicit_missing no/such/file

# A library with a symbol that nobody has is refused as it is loaded, not when the symbol is first called.
fake undefined/lib/libamdhip64.so.7 libamdhip64.so.7 -DFAKE_VERSION=70100000 -DFAKE_UNDEFINED
fake undefined/lib/libamdhip64.so.6 libamdhip64.so.6 -DFAKE_VERSION=60100000 -DFAKE_WITH_COMPILER
ROCM_PATH=$build/undefined expect uses undefined/lib/libamdhip64.so.6

# Versions that are not known.
fake other/lib/libamdhip64.so.8 libamdhip64.so.8 -DFAKE_VERSION=80000000
fake other/lib/libamdhip64.so.4 libamdhip64.so.4 -DFAKE_VERSION=40000000
RDM_HIP_LIBRARY=$build/other/lib/libamdhip64.so.8 expect explicit_version other/lib/libamdhip64.so.8
RDM_HIP_LIBRARY=$build/other/lib/libamdhip64.so.4 expect explicit_version other/lib/libamdhip64.so.4
ROCM_PATH=$build/all expect loaded_newer "$build/other/lib/libamdhip64.so.8"
fake lies/lib/libamdhip64.so.7 libamdhip64.so.7 -DFAKE_VERSION=80000000
ROCM_PATH=$build/lies expect version_lies

# Nothing that can be loaded: files that hide whatever the system has under these names.
mkdir -p "$build/hidden"
for name in libamdhip64.so.7 libamdhip64.so.6 libamdhip64.so.5 libamdhip64.so libcuda.so.1; do
  echo "this is no library, and long enough for the loader to read a whole header from it: $name" \
    >"$build/hidden/$name"
done
if [ -d /opt/rocm/lib ]; then
  echo "SKIPPED: nothing, only_newer: this system has a ROCm in /opt/rocm"
else
  LD_LIBRARY_PATH=$build/hidden ROCM_PATH=$build/no-rocm expect nothing
  cp "$build/other/lib/libamdhip64.so.8" "$build/hidden/libamdhip64.so"
  LD_LIBRARY_PATH=$build/hidden expect only_newer
fi
LD_LIBRARY_PATH=$build/hidden expect no_cuda

# A compiler of another version is not taken, and none at all is no failure to open.
fake alone/lib/libamdhip64.so.6 libamdhip64.so.6 -DFAKE_VERSION=60100000
fake alone/lib/libhiprtc.so libhiprtc.so.7 -DFAKE_VERSION=7 -DFAKE_COMPILER
echo "this is no library, and long enough for the loader to read a whole header from it" \
  >"$build/hidden/libhiprtc.so.6"
LD_LIBRARY_PATH=$build/hidden ROCM_PATH=$build/alone expect no_compiler libhiprtc.so.6
LD_LIBRARY_PATH=$build/hidden ROCM_PATH=$build/alone expect no_compiler "of major version 7, and the runtime of 6"
fake within/lib/libamdhip64.so.6 libamdhip64.so.6 -DFAKE_VERSION=60100000 -DFAKE_WITH_COMPILER
LD_LIBRARY_PATH=$build/hidden ROCM_PATH=$build/within expect compiler within/lib/libamdhip64.so.6

# What hipInit says.
for error in 35 999; do
  fake "init$error/lib/libamdhip64.so.7" libamdhip64.so.7 -DFAKE_VERSION=70100000 -DFAKE_INIT="$error"
  ROCM_PATH=$build/init$error expect init_fails "$error"
done
for error in 100 101; do
  fake "init$error/lib/libamdhip64.so.7" libamdhip64.so.7 -DFAKE_VERSION=70100000 -DFAKE_INIT="$error"
  ROCM_PATH=$build/init$error expect init_without_device "init$error/lib/libamdhip64.so.7"
done

mkdir -p "$build/nodes"
expect denied "$build/nodes"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
