#!/usr/bin/env bash
# Builds kaido-publish: `kaido p4 publish` as a separate small static binary for VMs. It depends
# only on a Linux kernel. The last line of output is its path.
set -euo pipefail
. "$(dirname "$0")/env.sh"

host=$(rustc -vV | sed -n 's/^host: //p')
directory=$(realpath -m "$TARGET")/publisher
RUSTFLAGS="-C target-feature=+crt-static" as_user cargo build --quiet --profile small \
    --package kaido-publisher --bin kaido-publish --target "$host" --target-dir "$directory"
program=$directory/$host/small/kaido-publish
if ldd "$program" 2>&1 | grep -q '=>'; then
    echo "error: $program is not static: is the C library's libc.a there (Debian: libc6-dev)?" >&2
    exit 1
fi
echo "$program"
