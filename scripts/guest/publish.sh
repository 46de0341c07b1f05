#!/usr/bin/env bash
# `make test-publisher`: kaido-publish runs in a virtual machine without any other part of Kaido and
# publishes in its ivshmem device's memory. The host reads the values, the heartbeats and the end.
set -euo pipefail
. "$(dirname "$0")/../env.sh"

as_user scripts/guest/kernel.sh >/dev/null
publisher=$(scripts/publisher.sh)
build_tests >/dev/null
kaido=$(realpath "$TARGET")/debug/kaido
work=$(mktemp -d)
guest=
finish() {
    if [ -n "$guest" ]; then
        kill "$guest" 2>/dev/null || true
        wait "$guest" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap finish EXIT

# The guest finds its device itself. Twenty seconds suffice for the host to read it.
cat >"$work/job" <<JOB
#!/bin/sh
$publisher --every 100 --valid 60000 --set app.queue=17 &
sleep 20
kill -INT \$!
wait \$!
JOB
chmod +x "$work/job"
scripts/guest/image.sh "$work/image" "$work/job" "$publisher"
scripts/guest/boot.sh "$work/image" 180 -smp 1 \
    -object "memory-backend-file,id=vm,share=on,mem-path=$work/vm,size=1M" \
    -device ivshmem-plain,memdev=vm >"$work/log" 2>&1 &
guest=$!

seen() { # STATE: checks that the host reads the guest's values, and this state of the writer
    "$kaido" p4 published --json "$work/vm" >"$work/seen" 2>"$work/why" &&
        python3 - "$work/seen" "$1" 2>>"$work/why" <<'PY'
import json, sys
seen = json.load(open(sys.argv[1]))
keys = {key["key"]: key for key in seen["keys"]}
assert seen["state"] == sys.argv[2]
assert keys["app.queue"]["value"] == 17
memory = keys["memory.total"]
assert memory["unit"] == "bytes" and memory["valid_ns"] == 60_000_000_000 and memory["value"] > 0
assert seen["state"] == "ended" or keys["app.queue"]["fresh"]
PY
}
fail() {
    echo "error: $1" >&2
    cat "$work/log" "$work/why" "$work/seen" >&2 2>/dev/null || true
    echo "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out"
    exit 1
}
await() {
    local tries
    for tries in $(seq 200); do
        ! seen "$1" || return 0
        [ -d "/proc/$guest" ] || [ "$1" = ended ] || fail "the guest ended before the host saw that it $1"
        read -rt 0.5 <> <(:) || true
    done
    fail "in $tries looks the host did not see that the guest $1"
}
await publishes
await ended
status=0
wait "$guest" || status=$?
guest=
[ "$status" = 0 ] || fail "the guest's job failed"
echo "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"
