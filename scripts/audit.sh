#!/usr/bin/env bash
# Looks each crate of Cargo.lock up in RustSec's advisories, which are fetched with git: outside of `make test`, which
# works without a network. KAIDO_ADVISORY_DB names a clone of the advisories for machines that cannot fetch.
set -euo pipefail
. "$(dirname "$0")/env.sh"
PATH="$PATH:$PWD/$TARGET/tools/bin"
case $TARGET in /*) PATH="$PATH:$TARGET/tools/bin" ;; esac

if [ -n "${KAIDO_ADVISORY_DB:-}" ]; then
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$(realpath "$KAIDO_ADVISORY_DB").insteadOf"
    export GIT_CONFIG_VALUE_0=https://github.com/RustSec/advisory-db
fi
as_user cargo fetch --quiet --locked
as_user cargo deny --log-level error check --hide-inclusion-graph advisories
