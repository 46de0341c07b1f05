#!/usr/bin/env bash
# `make bench-guest`: what SRv6 takes of a processor's instructions, kernel and XDP, with VRF and VLAN
# devices. The guest's clock goes a nanosecond for each instruction; the kernel is as Debian sets it.
# Writes bench/results/guest.json.
set -euo pipefail
. "$(dirname "$0")/../env.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kaido=$(realpath "$TARGET")/debug/kaido
as_user scripts/guest/kernel.sh >/dev/null
# What is measured is the kernel's and the programs', so that a build for tests does.
as_user cargo build --quiet --package kaido
cat >"$work/job" <<JOB
#!/bin/sh
$kaido --json bench instructions >/rows || exit
echo "guest: rows"
cat /rows
JOB
chmod -R a+rX "$work"
chmod a+x "$work/job"
scripts/guest/image.sh "$work/image" "$work/job" "$kaido"
scripts/guest/boot.sh "$work/image" 1800 -smp 1 -icount shift=0,sleep=off | tee "$work/log"
sed -n "/^guest: rows/,/^guest: the job/p" "$work/log" | grep -v "^guest: " >"$work/rows"
as_user cp "$work/rows" bench/results/guest.json
