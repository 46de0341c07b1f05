#!/usr/bin/env bash
# Checks formatting, lints, layers, schemas, generated pages and licences. The exit status is the
# number of failed steps. With --without-clippy, clippy is left to the build of the tests.
set -uo pipefail
. "$(dirname "$0")/env.sh"

failed=0
step() {
    echo "== $*"
    as_user "$@" || failed=$((failed + 1))
}

step cargo fmt --all --check
[ "${1:-}" = --without-clippy ] || step cargo clippy --quiet --workspace --all-targets -- -D warnings
step cargo xtask layers
step cargo xtask prose
step cargo xtask schema --check
step cargo xtask behaviors --check
step cargo xtask language --check
step cargo xtask benchmarks --check
# cargo-deny checks the crates of all platforms, but does not fetch them.
step cargo fetch --quiet --locked
step cargo deny --offline --log-level error check --hide-inclusion-graph licenses bans sources
exit "$failed"
