#!/bin/sh
# Unpacks packages of another Debian suite into a folder, without installing anything.
#
#   tests/headers/fetch.sh [--with-dependencies] SUITE FOLDER PACKAGE...
#
# The mirror is that of the system's own apt sources; apt's own lists and settings are left alone. Ends
# with 3 and one line that says why where the packages can not be had. A folder that is complete is left as it is.
set -eu

dependencies=no
if [ "${1:-}" = --with-dependencies ]; then
  dependencies=yes
  shift
fi
if [ $# -lt 3 ]; then
  sed -n '2,7p' "$0" >&2
  exit 2
fi
suite=$1
folder=$2
shift 2

unavailable() {
  echo "$1"
  exit 3
}

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
wanted="$suite $dependencies $*"
if [ -f "$folder/complete" ] && [ "$(cat "$folder/complete")" = "$wanted" ]; then
  exit 0
fi
command -v apt-get >/dev/null 2>&1 || unavailable "there is no apt-get on this system"
command -v dpkg >/dev/null 2>&1 || unavailable "there is no dpkg on this system"

# The first mirror of Debian's main archive that this system reads.
mirror=$(apt-get indextargets --format '$(REPO_URI)|$(ORIGIN)|$(LABEL)' 'Created-By: Packages' 2>/dev/null |
  sed -n 's/|Debian|Debian$//p' | head -n 1)
[ -n "$mirror" ] || unavailable "apt knows no Debian mirror on this system (run apt-get update first)"
key=/usr/share/keyrings/debian-archive-keyring.gpg

apt=$folder/apt
rm -rf "$apt" "$folder/root" "$folder/complete"
mkdir -p "$apt/empty" "$apt/lists/partial" "$apt/archives/partial" "$folder/root"
: >"$apt/status"
{
  echo "Types: deb"
  echo "URIs: $mirror"
  echo "Suites: $suite"
  echo "Components: main"
  [ ! -f "$key" ] || echo "Signed-By: $key"
} >"$apt/suite.sources"

apt_get() {
  apt-get -q -o Dir::Etc::sourcelist="$apt/suite.sources" -o Dir::Etc::sourceparts="$apt/empty" \
    -o Dir::Etc::preferencesparts="$apt/empty" -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" \
    -o Dir::Cache="$apt" -o Dir::Cache::archives="$apt/archives" -o APT::Sandbox::User=root \
    -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Debug::NoLocking=1 \
    -o Acquire::Retries=2 "$@" >>"$apt/log" 2>&1
}

apt_get update || unavailable "the lists of the suite $suite can not be read: $(tail -n 1 "$apt/log")"
if [ "$dependencies" = yes ]; then
  apt_get install --download-only --yes --no-install-recommends "$@" ||
    unavailable "the suite $suite does not give $*: $(tail -n 1 "$apt/log")"
else
  (cd "$apt/archives" && apt_get download "$@") ||
    unavailable "the suite $suite does not give $*: $(tail -n 1 "$apt/log")"
fi
for package in "$apt"/archives/*.deb; do
  dpkg -x "$package" "$folder/root"
done
rm -rf "$apt"
echo "$wanted" >"$folder/complete"
