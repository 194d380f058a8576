#!/bin/sh
# Builds and runs permission_test: permission_test.sh BUILD_FOLDER. Needs no ROCm.
set -eu
cd "$(dirname "$0")/../.."

build=$1
compiler=${CC:-cc}
mkdir -p "$build"
"$compiler" -std=c11 -w -shared -fPIC -Icsrc -o "$build/libamdhip64.so.7" tests/c/fake_hip.c \
  -Wl,-soname,libamdhip64.so.7 -DFAKE_VERSION=70100000
"$compiler" -std=c11 -D_GNU_SOURCE -DRDM_DRIVER_HIP -O1 -g -Wall -Wextra -Werror -Icsrc -Icsrc/include \
  tests/c/permission_test.c csrc/driver/hip.c csrc/driver/hip_library.c csrc/driver/hip_compiler.c \
  csrc/driver/loader.c csrc/driver/no_compiler.c csrc/status.c -Wl,--wrap=rdm__loader_node_denied \
  -o "$build/permission_test" -pthread -ldl
RDM_HIP_LIBRARY=$(realpath "$build/libamdhip64.so.7") "$build/permission_test"
