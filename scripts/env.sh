# Sourced by the other scripts: where cargo is, and how to run a command as whom.
#
# Building is the user's, running labs is root's. Works as root, as a user with sudo, and under
# sudo, where PATH has lost the user's cargo and files made as root would get in the user's way.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

RUST_NEEDED=1.95
TARGET=${CARGO_TARGET_DIR:-target}

rust_is_new_enough() {
    local version
    command -v cargo >/dev/null || return
    version=$(rustc --version 2>/dev/null | cut -d' ' -f2) && [ -n "$version" ] &&
        printf '%s\n%s\n' "$RUST_NEEDED" "$version" | sort --check --version-sort 2>/dev/null
}

home_of() { getent passwd "${1:?}" | cut -d: -f6; }

# Rust from rustup, which installs into a home, where PATH has none or the distribution's old one.
find_rust() {
    local home
    rust_is_new_enough && return
    for home in "$(home_of "${SUDO_USER:-root}")" "${HOME:-/}" "$(home_of root)"; do
        if [ -x "$home/.cargo/bin/cargo" ]; then
            export PATH="$home/.cargo/bin:$PATH" RUSTUP_HOME="${RUSTUP_HOME:-$home/.rustup}"
            return
        fi
    done
}

# The user behind sudo, if the sources are his.
builder() {
    if [ "$EUID" = 0 ] && [ "${SUDO_USER:-root}" != root ] &&
        [ "$(stat -c %U .)" = "$SUDO_USER" ]; then
        echo "$SUDO_USER"
    fi
}

as_user() {
    local user
    user=$(builder)
    if [ -n "$user" ]; then
        runuser -u "$user" -- env "HOME=$(home_of "$user")" "PATH=$PATH" "$@"
    else
        "$@"
    fi
}

as_root() {
    if [ "$EUID" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo -E env "PATH=$PATH" "$@"
    else
        echo "error: this needs root: run it as root, or install sudo" >&2
        return 1
    fi
}

# `cargo test`, whose test programs run as root.
cargo_test_as_root() {
    local host user
    user=$(builder)
    as_user cargo test --locked --no-run "$@" || return
    if [ -n "$user" ]; then
        # What the user has built is only run: nothing in his folders becomes root's.
        CARGO_HOME="$(home_of "$user")/.cargo" cargo test --locked "$@"
    elif [ "$EUID" = 0 ]; then
        cargo test --locked "$@"
    else
        host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
        # Asks for a password before the first test does.
        as_root true && env "CARGO_TARGET_${host}_RUNNER=sudo -E" cargo test --locked "$@"
    fi
}

find_rust
