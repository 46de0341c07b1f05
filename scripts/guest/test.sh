#!/usr/bin/env bash
# The tests of what touches the kernel, on Linux 6.1 in a guest, where VRF and VLAN devices are real.
# There nothing is skipped but what 6.1 cannot have (crates/testkit/src/feature.rs). With --short, as
# `make test` has it, the daemon's tests are those that between them load every program, since under
# translation the verifier takes ten seconds for each start of a daemon.
set -euo pipefail
. "$(dirname "$0")/../env.sh"

TESTS=(
    --package kaido-bpf --package kaido-netlink --package kaido-dataplane --package kaido
    --lib --test srv6 --test xdp --test kernel --test dataplane --test lab
)
# What sends streams, and waits for them, takes too long under translation.
SKIP="--skip soak:: --skip flapping:: --skip attaching:: --skip jumbo:: --skip modes::"
# What needs a compiler, FRR, or user space's queues, which the guest has not.
SKIP="$SKIP --skip bgp:: --skip held:: --skip function_chain::"
# What a tag's 4.3 seconds are too short for there.
SKIP="$SKIP --skip root_a_tag_is_lost --skip root_only_a_tag_of_its_own"
SECONDS_AT_MOST=3000
DAEMONS=root_
# Of labs, what netem does as the emulator and the kernel do.
LABS="conformance:: root_netem"
if [ "${1:-}" = --short ]; then
    SECONDS_AT_MOST=1500
    # Counting is the same there, and under translation it takes minutes.
    SKIP="$SKIP --skip sids_push_each_other_out"
    LABS="root_conformance_of_delays root_conformance_of_loss"
    DAEMONS="alone::root_endpoints alone::root_a_headend answers::root_answers_of_the_node_go"
    DAEMONS="$DAEMONS functions::root_inner functions::root_a_mark functions::root_masquerade"
    DAEMONS="$DAEMONS proxies::am::root_a_packet_is_to_its_last_segment_for_a_router"
    DAEMONS="$DAEMONS proxies::bump::root_each proxies::bump::root_vlans proxies::statics::root_every"
    DAEMONS="$DAEMONS slow_path::root_the_kernel tenants::root_tenants_with trace::root_a_trace_shows"
fi
# Under translation everything takes some fifty times as long.
PACKETS=${KAIDO_PACKETS:-2000}
SLOWER=10

kaido=$(realpath "$TARGET")/debug/kaido
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
as_user scripts/guest/kernel.sh >/dev/null
echo "Building the guest's tests"
as_user cargo build --quiet --package kaido
as_user cargo test --no-run --quiet --message-format=json "${TESTS[@]}" >"$work/built"
mapfile -t programs < <(sed -n 's|.*"executable":"\([^"]*/deps/[^"]*\)".*|\1|p' "$work/built" | sort)
of_kaido() { # NAME: the program of one of its test files
    sed -n "s|.*/crates/kaido#.*\"executable\":\"\([^\"]*/deps/$1-[^\"]*\)\".*|\1|p" "$work/built"
}
daemons=$(of_kaido dataplane)
labs=$(of_kaido lab)
{
    echo '#!/bin/sh'
    echo 'echo "guest: Linux $(uname -r), $(nproc) processors"'
    echo "export KAIDO_NO_SKIP=1 KAIDO_PACKETS=$PACKETS KAIDO_SLOWER=$SLOWER RUST_TEST_THREADS=2"
    echo 'failed=0'
    for program in "${programs[@]}"; do
        case $program in
            "$daemons") wanted=$DAEMONS ;;
            "$labs") wanted=$LABS ;;
            *) wanted=root_ ;;
        esac
        echo "echo 'guest: $(basename "${program%-*}")'; $program $wanted $SKIP || failed=1"
    done
    # Last, since it is the whole machine's: without its compiler the kernel refuses callbacks.
    echo "echo 0 >/proc/sys/net/core/bpf_jit_enable"
    echo "$kaido --json doctor 2>/dev/null | grep -q net.core.bpf_jit_enable=1 || { echo no word of the compiler; failed=1; }"
    echo 'exit $failed'
} >"$work/job"
chmod +x "$work/job"
scripts/guest/image.sh "$work/image" "$work/job" "${programs[@]}" "$kaido"
status=0
KERNEL_OPTIONS="mitigations=off init_on_alloc=0" \
    scripts/guest/boot.sh "$work/image" "$SECONDS_AT_MOST" -smp 2 | tee "$work/log" || status=$?
awk '/^test result: / { p += $4; f += $6; s += $8 }
    END { printf "in the guest: %d passed, %d failed, %d skipped\n", p, f, s }' "$work/log"
exit "$status"
