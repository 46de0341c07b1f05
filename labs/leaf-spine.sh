#!/bin/sh
# Prints a leaf-spine fabric with static routes: leaf-spine.sh SPINES LEAVES HOSTS_PER_LEAF [NAME]
# labs/leaf-spine-1000.yaml is `leaf-spine.sh 10 90 10 leaf-spine-1000`.
set -eu
[ $# -ge 3 ] || { echo "usage: $0 SPINES LEAVES HOSTS_PER_LEAF [NAME]" >&2; exit 2; }
exec awk -v spines="$1" -v leaves="$2" -v hosts="$3" -v name="${4:-leaf-spine}" '
BEGIN {
    total = spines + leaves + leaves * hosts
    printf "# A leaf-spine fabric of %d nodes, as leaf-spine.sh writes it: %d spines, %d leaves, %d hosts\n", total, spines, leaves, hosts
    print "# on each leaf. Routes are static, and aggregated: links are in the order that gives neighbors"
    print "# in the fabric neighboring prefixes."
    print "name: " name
    print "nodes:"
    for (s = 1; s <= spines; s++)
        printf "  s%d: %s\n", s, s == 1 ? "&router {router: linux, srv6: false}" : "*router"
    for (l = 1; l <= leaves; l++) printf "  l%d: *router\n", l
    for (h = 1; h <= leaves * hosts; h++) printf "  h%d: {}\n", h
    print "links:"
    for (l = 1; l <= leaves; l++)
        for (h = 1; h <= hosts; h++) printf "  - l%d-h%d\n", l, (l - 1) * hosts + h
    for (s = 1; s <= spines; s++)
        for (l = 1; l <= leaves; l++) printf "  - s%d-l%d\n", s, l
    last = leaves * hosts
    print "tests:"
    printf "  - {from: h1, ping: h%d}\n", last
    printf "  - {from: h%d, ping: s%d}\n", last, spines
    printf "  - {from: h1, to: h%d, throughput: 100mbit..1000gbit}\n", last
}'
