#!/usr/bin/env bash
# drivers.sh [CARD [SUITE]]: tests the data plane on emulated network cards instead of veth pairs:
# virtio-net-pci, igb, e1000e, or e1000. SUITE names the kernel (newer-kernel.sh). The guest has four
# wires; each test takes cards for its ports and its hosts.
set -euo pipefail
. "$(dirname "$0")/../env.sh"
card=${1:-virtio-net-pci} suite=${2:-bookworm}
SECONDS_AT_MOST=3000
# Tests of the network with two ports and two hosts.
TESTS=${TESTS:-"drivers::"}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
qemu=$(realpath -m "$TARGET")/guest/qemu
[ -d "$qemu" ] || as_user scripts/guest/suite.sh bookworm-backports "$qemu" qemu-system-x86 seabios
KERNEL=$(scripts/guest/newer-kernel.sh "$suite")
export KERNEL MODULES="igb e1000e e1000 virtio_net virtio_pci"
export QEMU="env LD_LIBRARY_PATH=$qemu/usr/lib/x86_64-linux-gnu $qemu/usr/bin/qemu-system-x86_64
    -L $qemu/usr/share/qemu -L $qemu/usr/share/seabios"
case $card in
    # Without checksums and segments of its peer, which XDP cannot forward.
    virtio-net-pci) options=,guest_csum=on,guest_tso4=off,guest_tso6=off,guest_ufo=off,guest_ecn=off ;;
    *) options= ;;
esac
devices=() wires=
for number in 1 2 3 4; do
    for end in a b; do
        mac=02:00:00:00:0$number:0$end
        port=$number$end
        # igb's virtual functions take places on its bus.
        devices+=(-netdev "hubport,id=n$port,hubid=$number"
            -device "pcie-root-port,id=p$port,chassis=0x$port,slot=0x$port"
            -device "$card,bus=p$port,netdev=n$port,mac=$mac,romfile=$options")
    done
    wires+=,02:00:00:00:0$number:0a=02:00:00:00:0$number:0b
done
build_tests >"$work/built"
tests=$(program_of "$work/built" kaido dataplane)
kaido=$(realpath "$TARGET")/debug/kaido
cat >"$work/job" <<JOB
#!/bin/sh
for module in virtio_pci virtio_net igb e1000e e1000; do modprobe \$module; done
echo "guest: Linux \$(uname -r), \$(nproc) processors, $card"
export KAIDO_NO_SKIP=1 KAIDO_SLOWER=10 KAIDO_WIRES=${wires#,} RUST_TEST_THREADS=1
$tests --nocapture $TESTS
JOB
chmod +x "$work/job"
scripts/guest/image.sh "$work/image" "$work/job" "$tests" "$kaido"
KERNEL_OPTIONS="mitigations=off init_on_alloc=0" \
    scripts/guest/boot.sh "$work/image" "$SECONDS_AT_MOST" -machine q35 -smp 2 "${devices[@]}"
