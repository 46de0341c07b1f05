#!/usr/bin/env bash
# Prints the directory of the guest's kernel, with `vmlinuz` and `lib/modules`: Debian's cloud
# kernel, unpacked but not installed. Downloaded once, and kept next to cargo's build output.
set -euo pipefail
. "$(dirname "$0")/../env.sh"

META=linux-image-cloud-amd64
RELEASE=6.1
directory=$(realpath -m "$TARGET")/guest/kernel

package() { apt-cache depends "$META" 2>/dev/null | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -1; }

fetch() {
    local new=$directory.new name
    if [ "$(uname -m)" != x86_64 ] || ! command -v apt-cache >/dev/null; then
        echo "error: the guest's kernel is Debian's $META: this needs apt on x86-64" >&2
        return 1
    fi
    name=$(package)
    if [ -z "$name" ]; then
        as_root apt-get update -q >&2
        name=$(package)
    fi
    if [ -z "$name" ]; then
        echo "error: apt knows no $META: the guest needs Debian's repository" >&2
        return 1
    fi
    echo "Fetching the guest's kernel: $name" >&2
    rm -rf "$new"
    mkdir -p "$new/deb"
    (cd "$new/deb" && apt-get download -q -o APT::Sandbox::User=root "$name" >&2)
    dpkg-deb -x "$new"/deb/*.deb "$new"
    mv "$new"/boot/vmlinuz-* "$new/vmlinuz"
    rm -r "$new/deb" "$new/boot"
    # A package has no module dependency list; it is created on installation.
    /bin/busybox depmod -b "$new" "$(ls "$new/lib/modules")"
    mv "$new" "$directory"
}

# The guest must run the oldest kernel that Kaido supports: tests would also pass on a newer one.
check() {
    local release
    release=$(ls "$directory/lib/modules")
    case $release in
    "$RELEASE".*) ;;
    *)
        echo "error: the guest's kernel is Linux $release, and is to be $RELEASE, that of Debian 12:" >&2
        echo "       give apt its repository, remove $directory, and try again" >&2
        return 1
        ;;
    esac
}

[ -d "$directory" ] || fetch
check
echo "$directory"
