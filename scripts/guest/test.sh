#!/usr/bin/env bash
# Runs the tests of kernel features on Linux 6.1 in a guest, which has VRF and VLAN devices. Only
# features that 6.1 cannot have are skipped (crates/testkit/src/feature.rs). With --short, as in
# `make test`, only those tests of the daemon run that together load every program: under
# translation, the verifier takes ten seconds per start of a daemon. With --only NAMES [CRATE FILE], only
# the tests of this file with one of these names run, by default the daemon's.
set -euo pipefail
. "$(dirname "$0")/../env.sh"

# Crates with their test files, or unit tests.
TESTS=(
    "bpf bpf" "netlink netlink" "netlink srv6" "dataplane dataplane" "dataplane xdp" "dataplane kernel"
    "kaido dataplane" "kaido lab"
)
# Tests that send streams and wait for them take too long under translation.
SKIP="--skip soak:: --skip flapping:: --skip attaching:: --skip jumbo:: --skip modes::"
SKIP="$SKIP --skip with_more_entries_than_the_kernel_gets"
# Tests that need a compiler, FRR, Python or user-space queues, which the guest lacks.
SKIP="$SKIP --skip bgp:: --skip held:: --skip function_chain:: --skip replace_csid:: --skip mobile::"
# Tests for which a tag's lifetime of 4.3 seconds is too short in the guest.
SKIP="$SKIP --skip root_a_tag_is_lost --skip root_only_a_tag_of_its_own"
SECONDS_AT_MOST=3000
DAEMONS=root_
# Lab tests: conformance of netem, the emulator and the kernel.
LABS="conformance:: root_netem"
if [ "${1:-}" = --short ]; then
    SECONDS_AT_MOST=1500
    PACKETS=1000
    # Counting works the same in the guest, but takes minutes under translation.
    SKIP="$SKIP --skip sids_push_each_other_out"
    # These compare the program with its specification, not with the kernel.
    for module in found ports slots tags too_big oracle::malformed oracle::regressions \
        oracle::mutations::root_mutations_of oracle::mutations::root_mutations_are_forwarded; do
        XDP="${XDP:-} --skip $module"
    done
    LABS="root_conformance_of_delays root_conformance_of_loss root_segmented_datagrams"
    DAEMONS="edge::bond edge::domain:: edge::foreign::root_no_checksum edge::tagged::root_a_tenant edge::tagged::root_no_sid_is_reached_through"
    DAEMONS="$DAEMONS alone::root_endpoints alone::root_a_headend answers::root_answers_of_the_node_go"
    DAEMONS="$DAEMONS functions::root_inner functions::root_a_mark functions::root_masquerade"
    DAEMONS="$DAEMONS hostile::root_an_offloaded proxies::am::root_a_packet_is_to_its_last_segment_for_a_router"
    DAEMONS="$DAEMONS proxies::bump::root_each proxies::bump::root_vlans proxies::statics::root_every"
    DAEMONS="$DAEMONS slow_path::root_the_kernel tenants::root_tenants_with trace::root_a_trace_shows"
fi
if [ "${1:-}" = --only ]; then
    TESTS=("${3:-kaido} ${4:-dataplane}")
    ONLY=${2:?}
fi
# Under translation everything takes about fifty times longer.
PACKETS=${KAIDO_PACKETS:-${PACKETS:-2000}}
SLOWER=10

kaido=$(realpath "$TARGET")/debug/kaido
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
as_user scripts/guest/kernel.sh >/dev/null
build_tests >"$work/built"
daemons=$(program_of "$work/built" kaido dataplane)
labs=$(program_of "$work/built" kaido lab)
programs=()
for test in "${TESTS[@]}"; do
    # shellcheck disable=SC2086
    programs+=("$(program_of "$work/built" $test)")
done
{
    echo '#!/bin/sh'
    echo 'echo "guest: Linux $(uname -r), $(nproc) processors"'
    echo "export KAIDO_NO_SKIP=1 KAIDO_PACKETS=$PACKETS KAIDO_SLOWER=$SLOWER"
    echo 'failed=0'
    for program in "${programs[@]}"; do
        threads=2
        case $program in
            "$daemons") wanted=$DAEMONS ;;
            "$labs") wanted=$LABS ;;
            */xdp-*) wanted="root_ ${XDP:-}" ;;
            # These wait most of the time.
            */netlink-*) wanted=root_ threads=6 ;;
            *) wanted=root_ ;;
        esac
        wanted=${ONLY:-$wanted}
        echo "echo 'guest: $(basename "${program%-*}")'; RUST_TEST_THREADS=$threads $program $wanted $SKIP || failed=1"
    done
    # Last, because it affects the whole machine: without the JIT the kernel rejects callbacks.
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
