#!/usr/bin/env bash
# image.sh OUT JOB [PROGRAM...]: packs the guest's initramfs: busybox, the tools that tests call,
# the kernel's network modules, and the programs at the same paths as on the host. The guest runs
# JOB and powers off. INIT names another init, FILES a directory to add to the root, KERNEL the
# directory of another kernel, and MODULES more of its modules.
set -euo pipefail
out=$(realpath "$1") job=$(realpath "$2")
shift 2
. "$(dirname "$0")/../env.sh"

TOOLS="mountpoint bash sh sysctl ip bridge tc ethtool ping nft unshare nsenter mount umount"
kernel=${KERNEL:-$(scripts/guest/kernel.sh)}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

add() { # FILE: adds it with its shared libraries
    local file
    for file in "$1" $(ldd "$1" 2>/dev/null | grep -o '/[^ ]*' || true); do
        [ -e "$root$file" ] || install -D "$file" "$root$file"
    done
}

mkdir -p "$root"/{usr/bin,usr/sbin,usr/lib,usr/lib64,proc,sys,dev,run,tmp,etc,root}
for directory in bin sbin lib lib64; do
    ln -s "usr/$directory" "$root/$directory"
done
install /bin/busybox "$root/bin/busybox"
for name in $(/bin/busybox --list | grep -vx busybox); do
    ln -sf busybox "$root/bin/$name"
done
for tool in $TOOLS; do
    path=$(command -v "$tool")
    rm -f "$root/bin/$tool"
    add "$(realpath "$path")"
    [ -e "$root$path" ] || ln -s "$(realpath "$path")" "$root$path"
done
for program in "$@"; do
    add "$program"
    # The remaining symbols suffice for a panic's backtrace; debug information is most of the file.
    strip --strip-debug "$root$program"
done
# `ip` prints protocols by name.
[ ! -e /etc/protocols ] || add /etc/protocols
modules=lib/modules/$(ls "$kernel/lib/modules")
mkdir -p "$root/$modules"
(cd "$kernel/$modules" && cp --parents -r modules.dep modules.alias modules.builtin kernel/net \
    kernel/lib kernel/crypto kernel/drivers/net/*.ko kernel/drivers/net/{vxlan,bonding} "$root/$modules")
for module in ${MODULES:-}; do
    # Each line is a module and those that it needs, by path.
    for path in $(sed -n "s|^\([^:]*/$module.ko\): *|\1 |p" "$kernel/$modules/modules.dep"); do
        (cd "$kernel/$modules" && cp --parents "$path" "$root/$modules")
    done
done
# The kernel calls this path to load modules for a link, a queue discipline or a cipher.
ln -sf /bin/busybox "$root/sbin/modprobe"
install "${INIT:-scripts/guest/init}" "$root/init"
[ -z "${FILES:-}" ] || (cd "$FILES" && tar -cf - .) | tar -xf - -C "$root" --keep-directory-symlink
install "$job" "$root/job"
(cd "$root" && find . -print0 | cpio --quiet --null --create --format=newc --owner=0:0 >"$out")
