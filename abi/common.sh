# What the scripts of this folder share. Sourced with `set -euo pipefail` on.

# The version that a header declares: header_version INCLUDE_FOLDER
header_version() {
  local major minor patch
  read -r major minor patch < <(awk '/^#define RDM_VERSION_(MAJOR|MINOR|PATCH) / { printf "%s ", $3 }
    END { print "" }' "$1/rocm_device_map.h")
  [ -n "$patch" ] || { echo "abi: $1/rocm_device_map.h has no version" >&2; return 2; }
  echo "$major.$minor.$patch"
}

# What two versions that keep one promise have in common: the major number, and the minor one too while that is 0.
promise() {
  case $1 in
    0.*) echo "${1%.*}" ;;
    *) echo "${1%%.*}" ;;
  esac
}

# The functions that a header declares, sorted: declared_functions INCLUDE_FOLDER
declared_functions() {
  sed -n 's/^RDM_API .*\b\(rdm_[a-z0-9_]*\)(.*/\1/p' "$1/rocm_device_map.h" | LC_ALL=C sort
}

# The version that a committed list of symbols is of: committed_version SYMBOLS
committed_version() {
  local version
  version=$(sed -n '1s/^# ABI \([0-9]*\.[0-9]*\.[0-9]*\):.*/\1/p' "$1")
  [ -n "$version" ] || { echo "abi: the first line of $1 names no version" >&2; return 2; }
  echo "$version"
}
