//! A bond as a port at the edge: its native XDP runs on the interfaces in it, which are not ports.

use std::process::Command;

use testkit::feature::BOND;

use super::{Bed, plain, with_tenant};
use crate::net::{ip, show};

/// Puts the node's left interface into a bond. Returns false if this kernel has none.
fn bond(bed: &Bed) -> bool {
    let line = ["link", "add", "b0", "type", "bond", "mode", "active-backup", "miimon", "100"];
    let add = || Command::new("ip").args(line).output().unwrap();
    let made = bed.net.node.run(add).unwrap();
    if !made.status.success() {
        BOND.is_missing(String::from_utf8_lossy(&made.stderr).trim().to_owned());
        return false;
    }
    // The bond gets the MAC address of its first interface.
    let lines = [
        "link set dev l down",
        "link set dev l master b0",
        "link set dev b0 up",
        "addr add fd00:a::1/64 dev b0 nodad",
    ];
    ip(&bed.net.node, &lines);
    bed.await_path();
    true
}

#[test]
fn root_a_bond_at_the_edge_is_not_attached_natively() {
    let mut bed = Bed::new();
    if !bond(&bed) {
        return;
    }
    let domain = "sources: [\"fd00:5::/48\", \"fd00:a::1/128\"]";
    let spoofed = |mark: &str| plain("fd00:5::1", "fd00:2::9", mark);
    for mode in ["auto", "generic"] {
        let mode = format!("mode: {mode}\n");
        bed.apply("{ b0: {}, r: {} }", &mode);
        assert!(bed.reaches_sid() && bed.passes(spoofed), "nothing to keep from it");
        bed.apply("{ b0: { sids: false }, r: {} }", &mode);
        let before = bed.dropped("edge");
        assert!(!bed.reaches_sid());
        assert_eq!(bed.dropped("edge"), before + 1);
        let rest = with_tenant("xdp", domain, "");
        bed.apply("{ b0: { tenant: blue, sids: false }, r: {} }", &format!("{mode}{rest}"));
        let before = bed.dropped("foreign-source");
        assert!(!bed.reaches_sid() && !bed.passes(spoofed));
        assert_eq!(bed.dropped("foreign-source"), before + 1);
        assert!(show(&bed.net.node, "link show dev b0").contains(" xdpgeneric "));
        assert!(!show(&bed.net.node, "link show dev l").contains("xdp"));
    }
    let file = bed.net.kaido.file("native.yaml", "ports: { b0: {mode: native}, r: {} }\n");
    let refused = bed.net.kaido.run(&["dataplane", "apply", &file]);
    refused.failed(1, &["`b0`", "runs on the interfaces below it", "`mode: generic` or `auto`"]);
    assert!(!bed.reaches_sid());
}
