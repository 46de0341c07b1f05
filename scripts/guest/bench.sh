#!/usr/bin/env bash
# `make bench-guest`: counts the instructions that SRv6 executes, in the kernel and in XDP, with VRF
# and VLAN devices. The guest's clock advances one nanosecond per instruction; the kernel has
# Debian's configuration. Writes bench/results/guest.json and its tables in
# docs/benchmarks.md.
set -euo pipefail
. "$(dirname "$0")/../env.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kaido=$(realpath "$TARGET")/debug/kaido
as_user scripts/guest/kernel.sh >/dev/null
# Only the kernel and the BPF programs are measured, so a debug build suffices.
build_tests >/dev/null
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
as_user cargo xtask benchmarks
