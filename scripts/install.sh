#!/usr/bin/env bash
# install.sh BINARY PREFIX [DESTDIR]: installs the command, the process of tenants' programs and the
# library for AF_XDP clients from the same directory, manual pages, completions and a systemd unit.
set -euo pipefail
binary=$(realpath "$1") prefix=${3:-}$2
. "$(dirname "$0")/env.sh"
umask 022

# The symbols are kept apart, where debuggers look for them.
stripped() { # FILE DIRECTORY MODE
    local name symbols
    name=$(basename "$1")
    symbols=$2/.debug/$name.debug
    mkdir -p "$(dirname "$symbols")"
    objcopy --only-keep-debug "$1" "$symbols"
    objcopy --strip-all --add-gnu-debuglink="$symbols" "$1" "$2/$name"
    chmod "$3" "$2/$name"
}
stripped "$binary" "$prefix/bin" 755
stripped "$(dirname "$binary")/kaido-sandbox" "$prefix/libexec/kaido" 755
stripped "$(dirname "$binary")/libkaido_xsk.so" "$prefix/lib/kaido" 644
mkdir -p "$prefix/share/man/man1"
"$binary" man "$prefix/share/man/man1"
completions() {
    mkdir -p "$(dirname "$prefix/share/$2")"
    "$binary" completions "$1" >"$prefix/share/$2"
}
completions bash bash-completion/completions/kaido
completions zsh zsh/site-functions/_kaido
completions fish fish/vendor_completions.d/kaido.fish
mkdir -p "$prefix/lib/systemd/system"
unit=$(<contrib/systemd/kaido-dataplane.service)
# In quotes, `&` in the prefix is literal.
printf '%s\n' "${unit//\/usr\/local/"$2"}" >"$prefix/lib/systemd/system/kaido-dataplane.service"
echo "installed under $prefix"
