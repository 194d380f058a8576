#!/bin/bash
# Programs outside the tree that use what is installed and what is published: run.sh BUILD_FOLDER
# They are copied to a folder of their own, built there with nothing of the tree in sight, and run on simulated GPUs.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=$1
make=${MAKE:-make}
cargo=${CARGO:-cargo}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0

fail() {
  echo "consumers: $1"
  exit 1
}
pass() { passed=$((passed + 1)); }
install() { "$make" --no-print-directory -s BUILD="$build" CC="${CC:-gcc}" "$@" > /dev/null; }

# A package is staged under DESTDIR, which no installed file knows of, and taken away again.
install install DESTDIR="$work/stage" PREFIX=/opt/rdm LIBDIR=/opt/rdm/lib64
(cd "$work/stage" && find . ! -type d | LC_ALL=C sort) > "$work/files"
version=$(sed -n 's/^Version: //p' "$work/stage/opt/rdm/lib64/pkgconfig/rocm-device-map.pc")
LC_ALL=C sort > "$work/expected" <<END
./opt/rdm/include/rocm_device_map.h
./opt/rdm/lib64/librocm_device_map.a
./opt/rdm/lib64/librocm_device_map.so
./opt/rdm/lib64/librocm_device_map.so.${version%%.*}
./opt/rdm/lib64/librocm_device_map.so.$version
./opt/rdm/lib64/pkgconfig/rocm-device-map.pc
END
diff "$work/expected" "$work/files" || fail 'install installed other files'
if grep -rq "$work" "$work/stage"; then fail 'an installed file names the folder that it was staged in'; fi
install uninstall DESTDIR="$work/stage" PREFIX=/opt/rdm LIBDIR=/opt/rdm/lib64
[ -z "$(find "$work/stage" ! -type d)" ] || fail 'uninstall left a file'
pass

prefix=$work/prefix
install install PREFIX="$prefix"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
pkg-config --exact-version="$version" rocm-device-map || fail 'pkg-config does not find it'
pass

# Whatever is in the environment, they choose `sim` by name.
unset RDM_DRIVER RDM_SIM_DEVICES
export RDM_CACHE_DIR=
for language in c cxx; do
  cp -r "tests/consumers/$language" "$work/$language"
  (cd "$work/$language" && "$make" --no-print-directory -s CC="${CC:-gcc}" CXX="${CXX:-g++}")
  readelf -dW "$work/$language/consumer" | grep -q "NEEDED.*librocm_device_map.so.${version%%.*}]" ||
    fail "$language: the shared library is not needed by its soname"
  LD_LIBRARY_PATH=$prefix/lib "$work/$language/consumer" || fail "$language with the shared library"
  pass
  if readelf -dW "$work/$language/consumer_static" | grep -q rocm_device_map; then
    fail "$language: the static program needs the shared library"
  fi
  "$work/$language/consumer_static" || fail "$language with the static library"
  pass
done

# The crate as it would be published: what its list of files leaves out is not there.
CARGO_TARGET_DIR=$work/package "$cargo" package --quiet -p rocm-device-map --no-verify --allow-dirty
mkdir "$work/rocm-device-map"
tar -xzf "$work/package/package/rocm-device-map-$version.crate" -C "$work/rocm-device-map" --strip-components=1
cp -r tests/consumers/rust "$work/rust"
# The versions that the crate itself is tested with, which a machine that has built it has.
cp "$work/rocm-device-map/Cargo.lock" "$work/rust/Cargo.lock"
(cd "$work/rust" && CARGO_TARGET_DIR=$work/target "$cargo" build --quiet --offline)
"$work/target/debug/consumer" || fail 'rust'
pass

echo "consumers: $passed passed, 0 failed"
