#!/usr/bin/env bash
# boot.sh IMAGE SECONDS [QEMU OPTION...]: boots the guest and prints its output. Exits with the
# status of its job, or with 1 if the guest panics, hangs or dies. KERNEL_OPTIONS is passed to its
# kernel, KERNEL is the directory of another kernel, and QEMU another command.
set -euo pipefail
image=$(realpath "$1") seconds=$2
shift 2
. "$(dirname "$0")/../env.sh"

kernel=${KERNEL:-$(scripts/guest/kernel.sh)}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# TCG instead of KVM, which few CI machines have: instructions are translated. Without SMAP and
# SMEP, because every switch of them would end a translated block. No network except within the
# guest. A soft lockup panics the guest, which then prints the backtraces of all processors.
timeout --foreground "$seconds" ${QEMU:-qemu-system-x86_64} -accel tcg -cpu max,-smap,-smep -m 3072 "$@" \
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
