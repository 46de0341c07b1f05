#!/usr/bin/env bash
# boot.sh IMAGE SECONDS [QEMU OPTION...]: boots the guest and prints what it says. Ends as its job
# ended; with 1 when the guest panics, hangs or dies instead. KERNEL_OPTIONS goes to its kernel.
set -euo pipefail
image=$(realpath "$1") seconds=$2
shift 2
. "$(dirname "$0")/../env.sh"

kernel=$(scripts/guest/kernel.sh)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Without KVM, which few machines for CI have: instructions are translated. Without SMAP and SMEP,
# whose every switch would end a translated block. No network but the guest's own.
# A processor that hangs in the kernel ends the guest, which then says where all of them are.
timeout --foreground "$seconds" qemu-system-x86_64 -accel tcg -cpu max,-smap,-smep -m 3072 "$@" \
    -nodefaults -no-user-config -display none -serial stdio -monitor none -nic none -no-reboot \
    -kernel "$kernel/vmlinuz" -initrd "$image" \
    -append "console=ttyS0 loglevel=5 panic=-1 softlockup_panic=1 softlockup_all_cpu_backtrace=1 ${KERNEL_OPTIONS:-}" </dev/null |
    sed -u 's|\r||' | tee "$log" || status=${PIPESTATUS[0]}
if [ "${status:-0}" = 124 ]; then
    echo "error: the guest did not come to its end within $seconds s" >&2
    exit 1
fi
ended=$(sed -n 's/^guest: the job ended with //p' "$log")
if [ -z "$ended" ]; then
    echo "error: the guest died before its job ended" >&2
    exit 1
fi
exit "$ended"
