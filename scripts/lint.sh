#!/usr/bin/env bash
# Checks formatting, lints, layers, schemas, generated pages and licences. The exit status is the
# number of failed steps. With --before-tests, `make test` does the rest: clippy compiles the tests, and
# the checks of xtask are among them.
set -uo pipefail
. "$(dirname "$0")/env.sh"

failed=0
step() {
    echo "== $*"
    as_user "$@" || failed=$((failed + 1))
}

step cargo fmt --all --check
if [ "${1:-}" != --before-tests ]; then
    step cargo clippy --quiet --workspace --all-targets -- -D warnings
    step cargo test --quiet --package xtask --test checks
fi
# cargo-deny checks the crates of all platforms, but does not fetch them.
step cargo fetch --quiet --locked
step cargo deny --offline --log-level error check --hide-inclusion-graph licenses bans sources
exit "$failed"
