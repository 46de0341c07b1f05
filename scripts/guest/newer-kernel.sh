#!/usr/bin/env bash
# newer-kernel.sh SUITE: prints the directory of the kernel of one of Debian's suites, with the
# drivers of network cards, as kernel.sh does: `bookworm` (Linux 6.1), `bookworm-backports` (6.12),
# `sid` (the newest). Downloaded once.
set -euo pipefail
. "$(dirname "$0")/../env.sh"
directory=$(realpath -m "$TARGET")/guest/linux-$1

if [ ! -e "$directory/vmlinuz" ]; then
    as_user scripts/guest/suite.sh "$1" "$directory" linux-image-amd64
    # From Debian 13 on, modules are below /usr.
    [ ! -d "$directory/usr/lib/modules" ] || mv "$directory/usr/lib/modules" "$directory/lib/"
    release=$(ls "$directory/lib/modules")
    modules=$directory/lib/modules/$release/kernel
    # The guest has no disks, screens or sound, and its busybox reads no compressed modules.
    find "$modules" -mindepth 1 -maxdepth 1 ! -name net ! -name lib ! -name crypto ! -name drivers \
        ! -name arch -exec rm -r {} +
    find "$modules/drivers" -mindepth 1 -maxdepth 1 ! -name net ! -name virtio ! -name i2c \
        ! -name dca ! -name ptp ! -name pps ! -name hwmon -exec rm -r {} +
    find "$modules" -name '*.ko.xz' -exec xz -d {} +
    /bin/busybox depmod -b "$directory" "$release"
    mv "$directory"/boot/vmlinuz-* "$directory/vmlinuz"
fi
echo "$directory"
