#!/usr/bin/env bash
# suite.sh SUITE DIRECTORY PACKAGE...: unpacks packages of a suite of Debian (bookworm,
# bookworm-backports, trixie, sid) with the libraries that this machine lacks, without installing
# them. The suite comes from the machine's own Debian repository; its index is kept in DIRECTORY.apt.
set -euo pipefail
. "$(dirname "$0")/../env.sh"
suite=$1 directory=$(realpath -m "$2")
shift 2
apt=$directory.apt

repository=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 2>/dev/null |
    awk '$2 == "bookworm" && $3 == "main" { print $1; exit }')
if [ -z "$repository" ]; then
    echo "error: apt knows no repository of Debian 12: add one, then try again" >&2
    exit 1
fi
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
for one in bookworm "$suite"; do
    echo "deb $repository $one main"
done | sort -u >"$apt/sources.list"
OPTIONS=(
    -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root
    # Nothing of the machine changes: its locks are not needed.
    -o Debug::NoLocking=1
)
echo "Fetching $* of $suite" >&2
apt-get "${OPTIONS[@]}" update -qq >&2
# The machine may have the package itself from another suite.
apt-get "${OPTIONS[@]}" -t "$suite" install --download-only --reinstall --no-install-recommends \
    --allow-downgrades -qq -y "$@" >&2
rm -rf "$directory.new"
mkdir -p "$directory.new"
for deb in "$apt"/cache/archives/*.deb; do
    dpkg-deb -x "$deb" "$directory.new"
done
rm -rf "$apt/cache" "$directory"
mv "$directory.new" "$directory"
