#!/usr/bin/env bash
# Long-running tests: 500 kills each of `up` and `down`, ten million packets through kernel and XDP,
# ten million tenant programs, two billion packets through XDP during changes, 100 GB through three
# service functions, 10 GB through Open vSwitch under tenants' programs, 8,640 changes of its ports
# and programs, 72 simulated hours of an emulated network, a wide area of BGP, ten repetitions of the
# moves, and five minutes without a move. A summary is written to docs/soak/, the raw figures to
# bench/results/, and from there to docs/benchmarks.md.
set -uo pipefail
. "$(dirname "$0")/env.sh"
exec </dev/null
scripts/deps.sh || exit
scripts/cargo build --release --package kaido || exit

summary=docs/soak/$(date -u +%Y-%m-%d).md
log=$(mktemp)
trap 'rm -f "$log"' EXIT

section() { # TITLE COMMAND...: runs it and keeps its last lines
    local started=$SECONDS result=passed
    echo "== $1" >&2
    "${@:2}" >"$log" 2>&1 || result=FAILED
    tail -n 20 "$log" >&2
    printf '\n## %s: %s, %s s\n\n```\n' "$1" "$result" "$((SECONDS - started))"
    grep -v '^$' "$log" | tail -n 20
    printf '```\n'
}

bench() { # NAME: prints the table and keeps the JSON
    scripts/as-root "$TARGET/release/kaido" --json bench "$1" >"bench/results/$1.json" &&
        cat "bench/results/$1.json"
}

kills() {
    KAIDO_KILLS=500 cargo_test_as_root --package kaido --test lab -- --nocapture kill
}

random_packets() {
    KAIDO_PACKETS=10000000 cargo_test_as_root --package kaido-dataplane --test xdp -- \
        --nocapture differential
}

# Tenant programs: native code and the interpreter, with guarded memory.
random_programs() {
    KAIDO_PROGRAMS=10000000 as_user cargo test --release --package kaido-sandbox -- --nocapture \
        random_programs
}

# Random messages of tenant processes, in the rings and on the control socket.
random_violators() {
    KAIDO_VIOLATORS=10000 as_user cargo test --release --package kaido-sandbox -- --nocapture \
        random_violations
}

# Compiled P4 compared with the P4 interpreter, packet by packet.
random_p4() {
    KAIDO_PACKETS=10000000 as_user cargo test --release --package kaido-p4-ebpf --lib -- --nocapture \
        random_packets
}

# One stream per processor, each with a million frames per second on an idle machine.
changing_stream() {
    local all=${KAIDO_FRAMES:-2000000000} streams=() failed=0 one processors
    processors=$(nproc)
    for ((one = 0; one < processors; one++)); do
        KAIDO_PROCESSOR=$one KAIDO_FRAMES=$(((all + processors - 1) / processors)) \
            cargo_test_as_root --package kaido --test dataplane -- --nocapture soak &
        streams+=("$!")
    done
    for one in "${streams[@]}"; do
        wait "$one" || failed=1
    done
    return "$failed"
}

# An emulated network in which everything changes.
emulated_days() {
    KAIDO_HOURS=72 as_user cargo test --release --package kaido-emulator --test soak -- --nocapture
}

# Half of the bytes in each direction, for at least one hour.
function_chain() {
    KAIDO_BYTES=${KAIDO_BYTES:-50000000000} KAIDO_SECONDS=${KAIDO_SECONDS:-3600} cargo_test_as_root --package kaido --test dataplane -- \
        --nocapture function_chain::root_streams
}

# Each byte of two streams is compared: under a program that is killed every 10 s and replaced five
# times a second, and under one in the switch.
streams_under_programs() {
    KAIDO_BYTES=${KAIDO_BYTES:-10000000000} cargo_test_as_root --package kaido --test clients -- \
        --nocapture streams
}

# 24 hours of changes, one in 10 s, without the time between them.
changing_ports() {
    KAIDO_CHANGES=${KAIDO_CHANGES:-8640} cargo_test_as_root --package kaido --test clients -- \
        --nocapture churn
}

{
    printf '# Soak, %s\n\n%s, %s processors, commit %s\n' "$(date -u +%Y-%m-%d)" \
        "$(uname -sr)" "$(nproc)" "$(git rev-parse --short HEAD)"
    section "500 kills of up, 500 of down" kills
    section "10,000,000 random packets, kernel and XDP" random_packets
    section "10,000,000 random programs, native code and interpreter" random_programs
    section "10,000 processes that violate the protocol at random" random_violators
    section "10,000,000 random packets through compiled P4 and the interpreter" random_p4
    section "2,000,000,000 packets while everything changes" changing_stream
    section "An hour and 100 GB through a filter, NAT and a queue" function_chain
    section "10 GB through Open vSwitch under programs that are killed and replaced" streams_under_programs
    section "8,640 changes of ports and programs of Open vSwitch" changing_ports
    section "72 simulated hours of an emulated network that changes" emulated_days
    section "31 autonomous systems" scripts/as-root "$TARGET/release/kaido" lab test labs/bgp-wan.yaml
    section "kaido bench lab" bench lab
    section "kaido bench path" bench path
    section "kaido bench dataplane" bench dataplane
    section "kaido bench p4" bench p4
} >"$summary"
as_user cargo xtask benchmarks || exit
! grep -q '^## .*: FAILED' "$summary"
