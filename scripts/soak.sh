#!/usr/bin/env bash
# The tests that take long: ignored by `cargo test`, and named soak_*.
set -euo pipefail
. "$(dirname "$0")/env.sh"
exec </dev/null
scripts/deps.sh
cargo_test_as_root --workspace --no-fail-fast -- --ignored soak_
