#!/usr/bin/env bash
# install.sh BINARY PREFIX [DESTDIR]: the command, its manual pages, its completions and a unit for
# systemd.
set -euo pipefail
binary=$(realpath "$1") prefix=${3:-}$2
. "$(dirname "$0")/env.sh"

install -D -m 755 "$binary" "$prefix/bin/kaido"
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
# In quotes, `&` in the prefix is itself.
printf '%s\n' "${unit//\/usr\/local/"$2"}" >"$prefix/lib/systemd/system/kaido-dataplane.service"
echo "installed under $prefix"
