#!/usr/bin/env bash
# packages.sh [SET...]: fetches Debian's packages of AF_XDP clients for tests and benchmarks, and
# unpacks them to target/packages/SET, without installing them. Each set has the libraries that this
# machine lacks. A complete set is kept. Without arguments, all sets.
set -euo pipefail
. "$(dirname "$0")/env.sh"

declare -A PACKAGES=(
    [openvswitch]="openvswitch-switch openvswitch-common"
    [openvswitch-dpdk]="openvswitch-switch-dpdk openvswitch-switch openvswitch-common
        librte-net-af-xdp23 librte-mempool-ring23 ibverbs-providers"
    [dpdk]="dpdk-dev librte-net-af-xdp23 ibverbs-providers"
    [knot]="knot-dnsutils knot"
)
# Programs and plugins whose libraries must be there.
declare -A PROGRAMS=(
    [openvswitch]="usr/lib/openvswitch-switch/ovs-vswitchd usr/sbin/ovsdb-server usr/bin/ovsdb-tool
        usr/bin/ovs-vsctl usr/bin/ovs-ofctl usr/bin/ovs-appctl"
    [openvswitch-dpdk]="usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk usr/sbin/ovsdb-server
        usr/bin/ovsdb-tool usr/bin/ovs-vsctl usr/bin/ovs-ofctl usr/bin/ovs-appctl
        usr/lib/x86_64-linux-gnu/librte_net_af_xdp.so.23"
    [dpdk]="usr/bin/dpdk-testpmd usr/lib/x86_64-linux-gnu/librte_net_af_xdp.so.23"
    [knot]="usr/sbin/kxdpgun usr/sbin/knotd"
)
# apt drops root's rights for downloads, but its user cannot write to the build output.
AS_ROOT=(-o APT::Sandbox::User=root)

is_installed() {
    dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed
}

# Prints the names, and the libraries on which they depend that are not installed.
with_libraries() { # NAME...
    local -A seen=()
    local round=("$@") next name
    while [ "${#round[@]}" -gt 0 ]; do
        for name in "${round[@]}"; do
            seen[$name]=1
        done
        next=$(apt-cache depends --no-recommends --no-suggests --no-conflicts --no-breaks \
            --no-replaces --no-enhances "${round[@]}" |
            sed -n 's/^  \(Pre\)\?Depends: \(lib[^ <>:]*\)$/\2/p' | sort -u)
        round=()
        for name in $next; do
            if [[ $name != *-dev ]] && [ -z "${seen[$name]:-}" ] && ! is_installed "$name"; then
                round+=("$name")
            fi
        done
    done
    printf '%s\n' "${!seen[@]}" | sort
}

# Prints what the programs of a directory lack.
missing_in() { # DIRECTORY SET
    local program
    for program in ${PROGRAMS[$2]}; do
        if [ ! -e "$1/$program" ]; then
            echo "$program"
        else
            LD_LIBRARY_PATH=$1/usr/lib/x86_64-linux-gnu ldd "$1/$program" 2>&1 |
                sed -n 's/^[[:space:]]*\(.*\) => not found$/\1/p'
        fi
    done | sort -u | xargs
}

# Downloads into the directory `deb` of the set.
download() { # SET NAME...
    (cd "$packages/$1.new/deb" && as_user apt-get download -qq "${AS_ROOT[@]}" "${@:2}" >&2)
}

are_known() { apt-cache show "$@" >/dev/null 2>&1; }

update() { as_root apt-get update -q >&2; }

fetch() { # SET
    local directory=$packages/$1 new=$packages/$1.new roots names missing deb
    mapfile -t roots < <(xargs -n 1 <<<"${PACKAGES[$1]}")
    if [ "$(uname -m)" != x86_64 ] || ! command -v apt-get >/dev/null; then
        echo "error: scripts/packages.sh needs apt on x86-64, for Debian's ${roots[*]}" >&2
        return 1
    fi
    as_user rm -rf "$new"
    as_user mkdir -p "$new/deb"
    if ! are_known "${roots[@]}" && ! { update && are_known "${roots[@]}"; }; then
        echo "error: apt does not know ${roots[*]}: give it a network and Debian's repository" >&2
        return 1
    fi
    mapfile -t names < <(with_libraries "${roots[@]}")
    echo "Fetching $1: ${#names[@]} packages" >&2
    # Old lists name versions that the repository has replaced: update them and retry.
    if ! download "$1" "${names[@]}" && ! { update && download "$1" "${names[@]}"; }; then
        echo "error: apt cannot fetch ${roots[*]}: give apt a network and Debian's repository," \
            "then run scripts/packages.sh $1 again" >&2
        return 1
    fi
    for deb in "$new"/deb/*.deb; do
        as_user dpkg-deb -x "$deb" "$new"
    done
    missing=$(missing_in "$new" "$1")
    if [ -n "$missing" ]; then
        echo "error: no $missing in ${roots[*]} and their libraries: are they those of Debian 12?" >&2
        return 1
    fi
    as_user rm -rf "$new/deb" "$directory"
    as_user mv "$new" "$directory"
}

packages=$(realpath -m "$TARGET")/packages
[ "$#" -gt 0 ] || set -- "${!PACKAGES[@]}"
for wanted; do
    if [ -z "${PACKAGES[$wanted]:-}" ]; then
        echo "error: packages.sh has no $wanted, only: ${!PACKAGES[*]}" >&2
        exit 2
    fi
    if [ ! -d "$packages/$wanted" ] || [ -n "$(missing_in "$packages/$wanted" "$wanted")" ]; then
        fetch "$wanted"
    fi
    echo "$packages/$wanted"
done
