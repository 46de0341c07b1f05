//! A bond as a port: its XDP program would run on the interfaces in it, which are not ports.

use std::process::Command;

use testkit::feature::BOND;

use super::Bed;
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
fn root_a_bond_is_not_a_port() {
    let bed = Bed::new();
    if !bond(&bed) {
        return;
    }
    for mode in ["auto", "generic", "native"] {
        let text = format!("mode: {mode}\nports: {{ b0: {{ sids: false }}, r: {{}} }}\n");
        let file = bed.net.kaido.file("bond.yaml", &text);
        let refused = bed.net.kaido.run(&["dataplane", "apply", &file]);
        refused.failed(2, &["line 2", "`b0` is a bond", "take them out of the bond"]);
        assert!(!show(&bed.net.node, "link").contains("xdp"), "{mode}");
    }
}
