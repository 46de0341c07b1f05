#!/usr/bin/env bash
# Installs missing packages and tools, after reporting them.
# With --lint, also those that only `make lint` and `make test` need.
set -euo pipefail
. "$(dirname "$0")/env.sh"

PACKAGES="frr iperf3 tcpdump clang libelf-dev zlib1g-dev pkg-config gcc make iproute2 iputils-ping ethtool nftables"
# For the guest of `make test-guest`, which runs Debian's kernel, and for the tests of service
# functions.
if [ "${1:-}" = --lint ] && command -v apt-get >/dev/null; then
    PACKAGES="$PACKAGES qemu-system-x86 busybox-static cpio curl iptables libnetfilter-queue-dev"
    PACKAGES="$PACKAGES python3-venv strace systemd"
fi
# Commands to look for instead, on a distribution without apt.
COMMANDS="iperf3 tcpdump clang pkg-config gcc make ip ping ethtool nft"

missing_packages() {
    local package
    for package in $PACKAGES; do
        dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
            echo "$package"
    done
}

missing_commands() {
    local command
    for command in $COMMANDS; do
        command -v "$command" >/dev/null || echo "$command"
    done
    [ -x /usr/lib/frr/zebra ] || [ -x /usr/libexec/frr/zebra ] || echo frr
}

install_packages() {
    local missing
    if ! command -v apt-get >/dev/null; then
        missing=$(missing_commands | xargs)
        [ -z "$missing" ] && return
        echo "error: no apt-get here; install these yourself: $missing" >&2
        echo "       and the headers of libelf and zlib" >&2
        return 1
    fi
    missing=$(missing_packages | xargs)
    [ -z "$missing" ] && return
    echo "Installing with apt-get: $missing"
    as_root apt-get update -q
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing
}

install_rust() {
    local found
    rust_is_new_enough && return
    if command -v rustup >/dev/null; then
        echo "Installing with rustup: the stable toolchain"
        as_user rustup toolchain install stable --profile minimal -c rustfmt -c clippy
        rust_is_new_enough && return
    fi
    found=$(rustc --version 2>/dev/null) || found="no rustc"
    command -v cargo >/dev/null || found="$found, no cargo"
    echo "error: Rust $RUST_NEEDED or newer is needed; here is: $found" >&2
    if command -v rustup >/dev/null; then
        echo "       rustup uses another toolchain than stable: \`rustup show\` says why" >&2
        echo "       (RUSTUP_TOOLCHAIN in the environment, or \`rustup override unset\`)" >&2
    else
        echo "       install it with rustup, as the user who builds, and run this again:" >&2
        echo "       curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal" >&2
        command -v curl >/dev/null || echo "       (curl is a package of the distribution's)" >&2
    fi
    return 1
}

CARGO_DENY=0.20.2

install_cargo_deny() {
    [ "$(cargo-deny --version 2>/dev/null)" = "cargo-deny $CARGO_DENY" ] && return
    echo "Building cargo-deny into $TARGET/tools: a few minutes, once"
    # Without optimization it is built three times as fast, and without symbols faster still.
    as_user env CARGO_PROFILE_DEV_DEBUG=false cargo install --debug --quiet --locked "cargo-deny@$CARGO_DENY" --force --root "$TARGET/tools"
}

# Programs and libraries in Python that tests use, with pinned versions.
install_python() { # NAME REQUIREMENTS
    local wanted=$2
    local directory=$TARGET/tools/$1
    cmp -s "$wanted" "$directory/installed" && return
    if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
        echo "error: no python3 with venv here: install it yourself" >&2
        return 1
    fi
    echo "Installing $1 into $directory with pip"
    rm -rf "$directory"
    as_user python3 -m venv "$directory"
    as_user "$directory/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$wanted"
    as_user cp "$wanted" "$directory/installed"
}

install_packages
install_rust
if [ "${1:-}" = --lint ]; then
    # All but the first wait for the network.
    pids=()
    trap wait EXIT
    for job in install_cargo_deny \
        "install_python p4runtime-shell crates/p4runtime/tests/shell/requirements.txt" \
        "install_python finsy crates/p4runtime/tests/finsy/requirements.txt" \
        "install_python scapy crates/dataplane/tests/models/requirements.txt"; do
        $job &
        pids+=($!)
    done
    scripts/packages.sh >/dev/null
    as_user scripts/guest/kernel.sh >/dev/null
    for pid in "${pids[@]}"; do
        wait "$pid"
    done
elif [ "${1:-}" = --audit ]; then
    install_cargo_deny
fi
