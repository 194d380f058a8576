#!/bin/sh
# Compiles our prototypes, constants and layouts against AMD's real headers.
#
#   tests/headers/check.sh [BUILD_FOLDER]      (default: target/headers)
#
# Always against the installed libamdhip64-dev; against those of Debian's later suites where they can be had. Says
# which were checked and which were SKIPPED, and why. Then it proves that the check can fail: each of a list of small
# falsehoods in our declarations has to be refused. CC chooses the compiler.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${1:-$root/target/headers}
mkdir -p "$build"
build=$(cd "$build" && pwd)
compiler=${CC:-cc}
files="prototypes constants layout"

# compile HEADERS OURS FILE
compile() {
  "$compiler" -std=gnu11 -fsyntax-only -Wall -D__HIP_PLATFORM_AMD__ -isystem "$1" -I"$2" -I"$2/include" \
    "$here/$3.c"
}

version_of() {
  awk '$2 == "HIP_VERSION_MAJOR" { major = $3 } $2 == "HIP_VERSION_MINOR" { minor = $3 }
       $2 == "HIP_VERSION_PATCH" { patch = $3 } END { print major "." minor "." patch }' "$1/hip/hip_version.h"
}

check() {
  for file in $files; do
    if ! compile "$1" "$root/csrc" "$file"; then
      echo "FAILED: $file.c against HIP $(version_of "$1")"
      exit 1
    fi
  done
  echo "checked: $files against HIP $(version_of "$1")"
}

# refuse HEADERS FILE OUR_HEADER SED_SCRIPT: the compile must fail once our header says something else.
refuse() {
  rm -rf "$build/false"
  mkdir -p "$build/false/driver"
  cp -R "$root/csrc/include" "$build/false/include"
  cp "$root"/csrc/driver/*.h "$build/false/driver/"
  sed "$4" "$root/csrc/driver/$3" >"$build/false/driver/$3"
  if cmp -s "$root/csrc/driver/$3" "$build/false/driver/$3"; then
    echo "FAILED: '$4' changes nothing in $3"
    exit 1
  fi
  if compile "$1" "$build/false" "$2" >"$build/false/log" 2>&1; then
    echo "FAILED: '$4' in $3 was not refused by $2.c against HIP $(version_of "$1")"
    exit 1
  fi
  if ! grep -q 'AMD declares otherwise\|is not\|is elsewhere\|has another size' "$build/false/log"; then
    echo "FAILED: '$4' in $3 was refused for another reason:"
    cat "$build/false/log"
    exit 1
  fi
  refused=$((refused + 1))
}

prove() {
  refused=0
  refuse "$1" prototypes hip_prototypes.h 's/(int \*version))/(long *version))/'
  refuse "$1" prototypes hip_prototypes.h 's/hipStreamWaitEvent, rdm__hip_error, (rdm__hip_stream stream, rdm__hip_event event/hipStreamWaitEvent, rdm__hip_error, (rdm__hip_event event, rdm__hip_stream stream/'
  refuse "$1" prototypes hip_prototypes.h 's/hipMemsetAsync, rdm__hip_error, (void \*to, int value, size_t size/hipMemsetAsync, rdm__hip_error, (void *to, int value, unsigned size/'
  refuse "$1" prototypes hip_prototypes.h 's/(hipFree, rdm__hip_error/(hipFree, void/'
  refuse "$1" prototypes hip_prototypes.h 's/, int device))/, long device))/'
  refuse "$1" prototypes hip_prototypes.h 's/int header_count, //'
  refuse "$1" constants driver.h 's/RDM_HIP_NOT_READY = 600/RDM_HIP_NOT_READY = 601/'
  refuse "$1" constants driver.h 's/BLOCKING_SYNC = 4 /BLOCKING_SYNC = 2 /'
  refuse "$1" layout hip_layout.h 's/char gcn_arch_name\[256\];/char gcn_arch_name[255];/'
  refuse "$1" layout hip_layout.h 's/  int multiprocessor_count;/  int other; int multiprocessor_count;/'
  refuse "$1" layout hip_layout.h 's/_to_end\[[0-9]*\]/_to_end[8]/'
  rm -rf "$build/false"
  echo "proved: $refused falsehoods refused against HIP $(version_of "$1")"
}

installed=${RDM_HIP_HEADERS:-/usr/include}
if [ ! -f "$installed/hip/hip_runtime_api.h" ] || [ ! -f "$installed/hip/hiprtc.h" ]; then
  echo "FAILED: AMD's headers are not in $installed/hip; install libamdhip64-dev" >&2
  exit 1
fi
check "$installed"
prove "$installed"

# Debian 13 has HIP 5.7, and the suites after it HIP 6.4.
for suite in trixie forky; do
  if reason=$("$here/fetch.sh" "$suite" "$build/$suite" libamdhip64-dev); then
    check "$build/$suite/root/usr/include"
    prove "$build/$suite/root/usr/include"
  else
    echo "SKIPPED: the headers of Debian $suite: ${reason:-no reason given}"
  fi
done
