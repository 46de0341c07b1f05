//! Addresses, locators and address pools.

use super::{expect, lab, nodes};

#[test]
fn addresses_and_locators() {
    let links = |text: &str| lab(&format!("links:\n{text}"));
    expect(
        &links("  - r1-r2: {ipv4: 10.9.0.0/16}\n  - r1-r2: {ipv4: 10.9.3.0/24}"),
        &[("5:19", "`10.9.3.0/24` overlaps 10.9.0.0/16 of r1-r2", "do not overlap")],
    );
    expect(
        &links("  - r1-r2: {ipv6: 'fd02:9::/48'}\n  - h1-r2: {ipv6: 'fd02:9::/64'}"),
        &[("5:19", "`fd02:9::/64` overlaps fd02:9::/48 of r1-r2", "do not overlap")],
    );
    expect(&links("  - r1-r2: {ipv4: 127.0.0.0/24}"), &[("4:19", "a meaning of its own", "")]);
    expect(
        &links("  - r1-r2: {ipv6: 'fd00:0:5::/64'}"),
        &[("4:19", "`fd00:0:5::/64` is in fd00::/32, which is for locators", "outside the block")],
    );
    expect(&links("  - r1-r2: {ipv4: 10.9.0.0/32}"), &[("4:19", "no room for 2 nodes", "shorter")]);
    expect(
        &links("  - l: {nodes: [r1, r2, h1], ipv4: 10.9.0.0/30}"),
        &[("4:36", "`10.9.0.0/30` has no room for 3 nodes", "a shorter `ipv4:` prefix")],
    );
    expect(
        &nodes("  r1: {router: frr, srv6: {locator: 'fd99::/48'}}"),
        &[("3:37", "the locator `fd99::/48` is outside the block fd00::/32", "inside the block")],
    );
    expect(
        &nodes("  r1: {router: frr, srv6: {locator: 'fd00::1/48'}}"),
        &[("3:37", "`fd00::1/48` has bits set behind its length", "write fd00::/48")],
    );
    expect(
        &nodes(
            "  r1: {router: frr, srv6: {locator: 'fd00:0:7::/48'}}\n  \
             r2: {router: frr, srv6: {locator: 'fd00:0:7::/48'}}\n  \
             r3: {router: frr, srv6: {locator: 'fd00:0:7:8::/64'}}",
        ),
        &[
            ("4:37", "`fd00:0:7::/48` overlaps the locator of r1", "a locator of its own"),
            ("5:37", "`fd00:0:7:8::/64` overlaps the locator of r1", "a locator of its own"),
        ],
    );
    expect(
        &nodes(
            "  r1: {router: frr, loopback: [10.1.1.1]}\n  r2: {router: frr, loopback: [10.1.1.1]}",
        ),
        &[("4:21", "`10.1.1.1` is part of the loopback of r1", "do not overlap")],
    );
    expect(
        &nodes("  r1: {router: frr, loopback: ['fd00::1']}"),
        &[("3:21", "`fd00::1` is in fd00::/32, which is for locators", "outside the block")],
    );
}

#[test]
fn pools() {
    expect(
        &lab("addresses: {ipv4: 10.9.0.0/23}\nlinks: [h1-r1, r1-r2]"),
        &[("3:19", "the pool `ipv4` has no prefix for link 2, r1-r2", "a larger pool")],
    );
    expect(
        &lab("addresses: {loopbacks4: 10.8.0.0/31}"),
        &[("3:25", "the pool `loopbacks4` has no address for router 2", "a larger pool")],
    );
    expect(
        &lab("srv6: {block: 'fd00::/47'}"),
        &[("3:15", "no locator for router 2", "a larger block")],
    );
    expect(
        &lab("srv6: {block: 'fd00::/48'}"),
        &[
            ("3:15", "`fd00::/48` is not a block for locators", "from /8 to /47"),
            ("3:15", "no locator for router 1", ""),
        ],
    );
    expect(
        &lab("addresses: {ipv6: 'fd00::/24'}"),
        &[("3:19", "the pool `ipv6` (fd00::/24) overlaps the block", "do not overlap")],
    );
    expect(
        &lab("addresses: {ipv4: 10.255.0.0/20}"),
        &[("3:1", "the pool `loopbacks4` leaves no prefix for links", "a smaller pool")],
    );
    expect(&lab("addresses: {ipv4: 10.9.0.0/25}"), &[("3:19", "too small a pool", "/23 or")]);
}
