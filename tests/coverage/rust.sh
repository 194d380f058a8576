#!/bin/bash
# Rust tests on a C core that counts what runs, for what is tested from there alone: rust.sh TARGET_FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."

export C_OPTION=--coverage
export CARGO_TARGET_DIR=$1
triple=$(rustc -vV | sed -n 's/^host: //p')
export "CFLAGS_${triple//-/_}=$C_OPTION -O0 -DNDEBUG -fprofile-update=atomic"
export RUSTFLAGS="-C linker=$PWD/tests/sanitizers/link_c.sh -C linker-flavor=gcc"
export RDM_DRIVER=sim
"${CARGO:-cargo}" test --quiet --target "$triple" --features rocm,cuda --test diagnosis --test disk_cache \
  --test disk_cache_folders
