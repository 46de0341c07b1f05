#!/usr/bin/env bash
# Fuzzes each target for KAIDO_SECONDS (60), guided by coverage. The flags are those of cargo-fuzz
# without a sanitizer, so that the stable compiler suffices. Findings are kept in fuzz/artifacts/.
set -euo pipefail
. "$(dirname "$0")/env.sh"
exec </dev/null

seconds=${KAIDO_SECONDS:-60}
host=$(rustc -vV | sed -n 's/^host: //p')
directory=$(realpath -m "$TARGET/fuzz")
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
as_user cargo build --quiet --release --manifest-path fuzz/Cargo.toml --target "$host" \
    --target-dir "$directory"
failed=0
for job in headers:fuzz/seeds/headers dataplane_file:labs/dataplane topology_file:labs \
    imports:crates/import/tests/files network:fuzz/seeds/network p4_program:crates/p4/tests/programs \
    p4_object:crates/p4-object/tests/objects vm_info:fuzz/seeds/vm_info \
    sandbox_answer:fuzz/seeds/sandbox_answer; do
    target=${job%%:*} seeds=${job#*:}
    echo "== $target, $seconds s"
    as_user mkdir -p "$directory/corpus/$target" "fuzz/artifacts/$target"
    as_user "$directory/$host/release/$target" "$directory/corpus/$target" "$seeds" \
        -artifact_prefix="fuzz/artifacts/$target/" -max_total_time="$seconds" -max_len=16384 \
        -timeout=10 -print_final_stats=1 -verbosity=0 || failed=1
done
exit "$failed"
