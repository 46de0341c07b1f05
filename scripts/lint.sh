#!/usr/bin/env bash
# Format, lints, floors, schema, licences. The exit code is the number of steps that failed.
set -uo pipefail
. "$(dirname "$0")/env.sh"
PATH="$PATH:$PWD/$TARGET/tools/bin"
case $TARGET in /*) PATH="$PATH:$TARGET/tools/bin" ;; esac

failed=0
step() {
    echo "== $*"
    as_user "$@" || failed=$((failed + 1))
}

step cargo fmt --all --check
step cargo clippy --quiet --workspace --all-targets -- -D warnings
step cargo xtask layers
step cargo xtask schema --check
step cargo xtask language --check
# cargo-deny looks at the crates of every platform, and fetches none itself.
step cargo fetch --quiet --locked
step cargo deny --offline --log-level error check --hide-inclusion-graph licenses bans sources
exit "$failed"
