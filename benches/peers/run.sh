#!/bin/bash
# Builds what this machine can build of the peers, runs all of them in one run, and puts them side by side.
#
#   benches/peers/run.sh [OUT.json]
#
# CUDARC=program   cudarc-peer, where it was built elsewhere: cargo build --release in benches/peers/cudarc
# RDM_DRIVER=...   the driver of our own part; `cuda` where it is not set
# PYTHON=python3   the Python whose PyTorch is used
# BUILD=folder     where to build; build/peers where it is not set
# LIBRARY_BUILD=folder   make's folder for the library; in BUILD where it is not set
# ROUNDS, SECONDS_EACH, THREADS   5 rounds of 0.2 s on 1, 2, 4, 8 and 16 threads: about three minutes for four peers
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:-peers.json}
python=${PYTHON:-python3}
build=${BUILD:-$root/build/peers}
mkdir -p "$build"
build=$(cd "$build" && pwd)
library=${LIBRARY_BUILD:-$build/library}

peers=()
skipped=()
skip() {
  echo "$1: skipped: $2" >&2
  skipped+=(--skipped "$1=$2")
}
# NAME PROGRAM COMMAND...: builds a peer, and goes on without it where that fails.
build_peer() {
  local name=$1 program=$2
  shift 2
  echo "building $name" >&2
  if "$@" > "$build/$name.log" 2>&1; then
    peers+=("$name=$program")
  else
    skip "$name" "did not build: $(grep -m 1 -i error "$build/$name.log" | head -c 200 || true) (see $name.log)"
  fi
}

cuda=${CUDA_HOME:-}
if [[ -z $cuda ]]; then
  if nvcc=$(command -v nvcc); then
    cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  else
    cuda=/usr/local/cuda
  fi
fi
nvcc=$cuda/bin/nvcc
# Where the run-time compiler is, for those who look for it at run time.
export LD_LIBRARY_PATH=$cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export RDM_DRIVER=${RDM_DRIVER:-cuda}
# What was compiled in another run is no part of this one.
export RDM_CACHE_DIR=

ours() {
  make -C "$root" --no-print-directory BUILD="$library" -j"${JOBS:-2}" lib &&
    "${CXX:-g++}" -std=c++17 -O2 -Wall -Wextra -I"$root/csrc/include" "$here/ours.cpp" \
      "$library/librocm_device_map.a" -pthread -ldl -lm -o "$build/ours"
}
handwritten() {
  "$nvcc" -std=c++17 -O2 -arch=native -Xcompiler -pthread "$here/handwritten.cu" -o "$build/handwritten" ||
    "$nvcc" -std=c++17 -O2 -Xcompiler -pthread "$here/handwritten.cu" -o "$build/handwritten"
}
torch_peer() {
  local torch=$1 abi=$2
  "${CXX:-g++}" -std=c++20 -O2 -D_GLIBCXX_USE_CXX11_ABI="$abi" "$here/torch_peer.cpp" -o "$build/torch_peer" \
    -isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include" -isystem "$cuda/include" \
    -L"$torch/lib" -L"$cuda/lib64" -Wl,-rpath,"$torch/lib" -Wl,--no-as-needed \
    -ltorch -ltorch_cpu -ltorch_cuda -lc10 -lc10_cuda -lcudart -pthread
}

build_peer rocm-device-map "$build/ours" ours
if ((${#peers[@]} == 0)); then
  cat "$build/rocm-device-map.log" >&2
  exit 1
fi
if [[ -x $nvcc ]]; then
  build_peer handwritten "$build/handwritten" handwritten
else
  skip handwritten 'there is no nvcc'
fi
if [[ -n ${CUDARC:-} ]]; then
  peers+=("cudarc=$CUDARC")
elif command -v cargo > /dev/null && [[ -x $nvcc ]]; then
  build_peer cudarc "$build/cudarc/release/cudarc-peer" \
    env CARGO_TARGET_DIR="$build/cudarc" cargo build --quiet --release --manifest-path "$here/cudarc/Cargo.toml"
else
  skip cudarc 'CUDARC names no program, and there is no cargo or no CUDA'
fi
describe_torch='import os, torch; print(os.path.dirname(torch.__file__), int(torch._C._GLIBCXX_USE_CXX11_ABI))'
if ! [[ -d $cuda/include ]]; then
  skip pytorch 'there is no CUDA'
elif described=$("$python" -c "$describe_torch" 2> /dev/null); then
  read -r torch abi <<< "$described"
  build_peer pytorch "$build/torch_peer" torch_peer "$torch" "$abi"
else
  skip pytorch "$python has no PyTorch"
fi

"$python" "$here/peers.py" --out "$out" --rounds "${ROUNDS:-5}" --seconds "${SECONDS_EACH:-0.2}" \
  --threads "${THREADS:-1,2,4,8,16}" "${skipped[@]}" "${peers[@]}"
