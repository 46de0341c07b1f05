#!/usr/bin/env bash
# Runs kaido-dataplane.service under systemd, PID 1 of a guest: start, health check, kill, reload
# and stop (unit-job). A system call that the unit's filter refuses kills the daemon there.
set -euo pipefail
. "$(dirname "$0")/../env.sh"

UNITS="basic sysinit local-fs local-fs-pre swap sockets timers paths slices network multi-user
    shutdown umount final poweroff"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
as_user scripts/guest/kernel.sh >/dev/null
build_tests >/dev/null

etc=$work/files/etc/systemd/system
mkdir -p "$etc/kaido-dataplane.service.d" "$etc/multi-user.target.wants" "$work"/files/{usr/local/bin,lib/systemd/system,var/tmp}
for unit in $UNITS; do
    cp "/lib/systemd/system/$unit.target" "$work/files/lib/systemd/system/"
done
ln -s /lib/systemd/system/multi-user.target "$etc/default.target"
cp contrib/systemd/kaido-dataplane.service "$etc/"
# The restart is late enough that the ping after SIGKILL passes without the daemon.
printf '[Service]\nRestartSec=20\nSystemCallErrorNumber=kill\nStandardOutput=append:/run/log\nStandardError=inherit\n' >"$etc/kaido-dataplane.service.d/kill.conf"
kaido=$(realpath "$TARGET")/debug/kaido
strip --strip-debug -o "$work/files/usr/local/bin/kaido" "$kaido"
cat >"$etc/job.service" <<'UNIT'
[Unit]
Description=Test of kaido-dataplane.service
[Service]
Type=oneshot
ExecStart=/job
StandardInput=null
StandardOutput=file:/dev/ttyS0
StandardError=inherit
UNIT
ln -s ../job.service "$etc/multi-user.target.wants/job.service"
printf 'root:x:0:0:root:/root:/bin/sh\n' >"$work/files/etc/passwd"
# A machine without an ID boots for the first time, and enables all units.
printf '0123456789abcdef0123456789abcdef\n' >"$work/files/etc/machine-id"
printf 'root:x:0:\n' >"$work/files/etc/group"

chmod -R a+rX "$work"
INIT=scripts/guest/systemd-init FILES=$work/files scripts/guest/image.sh "$work/image" scripts/guest/unit-job "$kaido" \
    "$(realpath /lib/systemd/systemd)" "$(realpath "$(command -v systemctl)")" "$(realpath "$(command -v systemd-analyze)")"
status=0
KERNEL_OPTIONS="mitigations=off init_on_alloc=0 systemd.show_status=0" \
    scripts/guest/boot.sh "$work/image" 600 -smp 2 | tee "$work/log" || status=$?
passed=$(grep -c '^passed: ' "$work/log" || true)
if [ "$status" = 0 ] && [ "$passed" -gt 0 ]; then
    echo "test result: ok. $passed passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"
else
    echo "test result: FAILED. $passed passed; 1 failed; 0 ignored; 0 measured; 0 filtered out"
    exit 1
fi
