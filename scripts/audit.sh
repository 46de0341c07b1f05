#!/usr/bin/env bash
# Checks the crates of Cargo.lock against RustSec's advisories, which are fetched with git. Not part
# of `make test`, which works without a network. KAIDO_ADVISORY_DB is the path of a clone of the
# advisories, for machines that cannot fetch them.
set -euo pipefail
. "$(dirname "$0")/env.sh"

if [ -n "${KAIDO_ADVISORY_DB:-}" ]; then
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$(realpath "$KAIDO_ADVISORY_DB").insteadOf"
    export GIT_CONFIG_VALUE_0=https://github.com/RustSec/advisory-db
fi
as_user cargo fetch --quiet --locked
if ! as_user cargo deny --log-level error check --hide-inclusion-graph advisories; then
    echo "error: advisories were found, or could not be fetched: without a network," \
        "KAIDO_ADVISORY_DB names a clone of RustSec's advisory-db" >&2
    exit 1
fi
