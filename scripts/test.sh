#!/usr/bin/env bash
# Runs all checks of CI. The last line is a summary: N passed, N failed, N skipped. Each failed lint
# step counts as one failure.
set -uo pipefail
. "$(dirname "$0")/env.sh"
exec </dev/null

if [[ $(pwd -P)/ = /tmp/* && $(stat -c %a /tmp) = 1777 ]]; then
    echo "error: the tests do not run below /tmp: routing daemons have a /tmp of their own, and DPDK" >&2
    echo "       loads no plugins from there. Clone to another directory." >&2
    exit 1
fi

# Notes the seconds since the last call.
began=0
times=
took() {
    times+=" $1 $((SECONDS - began)) s,"
    began=$SECONDS
}

# A first build has nothing to increment.
[ -d "$TARGET/debug" ] || export CARGO_INCREMENTAL=0

scripts/deps.sh --lint || exit
took packages

# Clippy compiles the tests, so that their build is also their lint: a check of all crates before it takes
# minutes on two processors. It leaves out the compiler's checks of raw pointers, which `cargo test` has.
export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS="-D__CLIPPY_HACKERY__warnings"

lint_failed=0
scripts/lint.sh --before-tests || lint_failed=$?
took lint

# Long computations: crate, test file, name. They have no deadlines, and run beside the other tests, on the
# time that those leave of the processors.
COMPUTATIONS=(
    "sandbox sandbox tests::random::random_programs_do_the_same_and_no_more"
    "p4-ebpf p4_ebpf codegen::tests::random::random_packets_make_no_difference"
    "p4-ebpf limits wide_products_are_counted"
    "p4-ebpf limits calls_that_add_no_value_are_counted"
)
compute() {
    local crate test name status=0
    for computation in "${COMPUTATIONS[@]}"; do
        read -r crate test name <<<"$computation"
        (cd "crates/$crate" && as_root chrt --idle 0 "$(program_of "$work/built" "$crate" "$test")" \
            --exact "$name") || status=1
    done
    return "$status"
}

work=$(mktemp -d)
log=$work/log
computing=
# A background job ignores an interrupt.
finish() {
    [ -z "$computing" ] || as_root kill -- "-$computing" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
# Most tests wait for a network: with one thread a processor, half of the time is idle.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
skips=()
for computation in "${COMPUTATIONS[@]}"; do
    skips+=(--skip "${computation##* }")
done
status=1
if build_tests >"$work/built" && as_root true; then
    took build
    # In a process group of its own.
    set -m
    compute >"$work/computed" 2>&1 &
    computing=$!
    set +m
    cargo_test_as_root --workspace --no-fail-fast -- --exact "${skips[@]}" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    wait "$computing" || status=1
    computing=
    tee -a "$log" <"$work/computed"
    took tests
fi

guest_status=0
if command -v apt-get >/dev/null && [ "$(uname -m)" = x86_64 ]; then
    scripts/guest/test.sh --short 2>&1 | tee -a "$log"
    guest_status=${PIPESTATUS[0]}
    scripts/guest/publish.sh 2>&1 | tee -a "$log"
    guest_status=$((guest_status + PIPESTATUS[0]))
    scripts/guest/unit.sh 2>&1 | tee -a "$log"
    guest_status=$((guest_status + PIPESTATUS[0]))
    took guests
else
    echo "SKIPPED: the guest, whose kernel is Debian's for x86-64" | tee -a "$log"
fi

# test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
read -r passed failed skipped < <(
    awk '/^test result: / { p += $4; f += $6; s += $8 } /^SKIPPED: the guest/ { s++ }
        END { print p + 0, f + 0, s + 0 }' "$log"
)
if [ "$((status + guest_status))" != 0 ] && [ "$failed" = 0 ]; then
    failed=1 # the build failed, or a test program died
fi
failed=$((failed + lint_failed))
echo "time:${times%,}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
