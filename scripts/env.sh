# Sourced by the other scripts: finds cargo, and runs commands as the right user.
#
# The user builds, and root runs labs. Works as root, as a user with sudo, and under sudo, where
# PATH lacks the user's cargo, and root-owned files would obstruct the user.

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

# Finds Rust installed by rustup in a home directory, if PATH has none or only an old one of the
# distribution.
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

# Prints the user who called sudo, if that user owns the sources.
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

# Builds all tests and the command, and prints them as JSON. A selection of packages would have other
# features, and `make test` would compile most crates a second time.
build_tests() {
    as_user cargo test --locked --no-run --workspace --message-format=json-render-diagnostics
}

# Prints the program of a crate's test file, or of its unit tests. Fails if there is none.
program_of() { # BUILT CRATE TEST
    sed -n "s|.*/crates/$2#.*\"name\":\"$3\".*\"executable\":\"\([^\"]*/deps/[^\"]*\)\".*|\1|p" "$1" | grep . || {
        echo "error: no program of the tests $3 in crates/$2" >&2
        return 1
    }
}

# Runs `cargo test`, with the test programs running as root.
cargo_test_as_root() {
    local host user
    user=$(builder)
    as_user cargo test --locked --no-run "$@" || return
    if [ -n "$user" ]; then
        # Root only runs the user's build, so no file in the user's directories becomes root's.
        CARGO_HOME="$(home_of "$user")/.cargo" cargo test --locked "$@"
    elif [ "$EUID" = 0 ]; then
        cargo test --locked "$@"
    else
        host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
        # Ask for a password before the first test does.
        as_root true && env "CARGO_TARGET_${host}_RUNNER=sudo -E" cargo test --locked "$@"
    fi
}

find_rust
case $TARGET in
    /*) PATH="$PATH:$TARGET/tools/bin" ;;
    *) PATH="$PATH:$PWD/$TARGET/tools/bin" ;;
esac
