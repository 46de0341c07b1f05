//! VLANs of a port in the SR domain.

use super::{Bed, SOURCE, plain, through, to_sid, with_priority, with_vlan_5};
use crate::net::show;

const HEAD: &str = "locators: [\"fd00:1::/48\"]\nsids:\n  \"fd00:1::1\": End\n  \
                    \"fd00:1::f:0:0/112\": End.AN.NF\n";

#[test]
fn root_a_vlan_of_the_domain_needs_an_interface() {
    let bed = Bed::new();
    let file = bed.net.kaido.file("vlan.yaml", &format!("{HEAD}ports:\n  l: {{ vlans: [5] }}\n"));
    for command in ["plan", "apply"] {
        let help = "`ip link add link l name l.5 up type vlan id 5`";
        bed.net
            .kaido
            .run(&["dataplane", command, &file])
            .failed(2, &["line 6: `l` has no interface for VLAN 5: ", help]);
    }
    assert!(bed.net.show()["sids"].as_array().unwrap().is_empty(), "nothing was applied");
}

/// Untagged frames of the port are outside of the domain.
#[test]
fn root_sids_are_reached_in_a_vlan_of_the_domain_alone() {
    let mut bed = Bed::new();
    bed.apply("{ l: {}, r: {} }", "");
    if !bed.add_vlan() {
        return;
    }
    let for_functions = || netlink::sysctl::write("ipv4/ip_early_demux", "0").unwrap();
    bed.net.node.run(for_functions).unwrap();
    let sid = |mark: &str| to_sid(SOURCE, mark);
    let function = |mark: &str| through("fd00:1::f:0:7", SOURCE, mark);
    let apply = |bed: &Bed, dataplane: &str, l: &str, more: &str| {
        bed.net
            .apply(&format!("{HEAD}dataplane: {dataplane}\nports: {{ l: {l}, r: {{}} }}\n{more}"))
    };
    apply(&bed, "xdp", "{ sids: false, vlans: [5] }", "");
    let shown = bed.net.kaido.ok(&["dataplane", "show"]);
    assert!(shown.contains("l (native, edge, VLAN 5)"), "{shown}");
    for _ in 0..3 {
        assert!(bed.passes_as(sid, with_vlan_5) && bed.passes_as(function, with_vlan_5));
    }
    assert_eq!(bed.net.packets("fd00:1::1/128"), Some(3), "by XDP");
    assert_eq!(bed.net.packets("fd00:1::f:0:0/112"), Some(3));
    let before = bed.dropped("edge");
    for dress in [|_: &mut Vec<u8>| {}, with_priority] {
        assert!(!bed.passes_as(sid, dress) && !bed.passes_as(function, dress));
    }
    assert_eq!(bed.dropped("edge") - before, 4);
    // The kernel gets other packets with their tags.
    assert!(bed.passes_as(|mark| plain(SOURCE, "fd00:b::2", mark), with_vlan_5));

    // Only from nodes of the domain.
    apply(&bed, "xdp", "{ sids: false, vlans: [5] }", "sources: [\"fd00:5::/48\"]\n");
    assert!(!bed.passes_as(sid, with_vlan_5));
    assert!(bed.passes_as(|mark| to_sid("fd00:5::1", mark), with_vlan_5));

    // Without `vlans`, the interface is closed with its port.
    apply(&bed, "xdp", "{ sids: false }", "");
    assert!(!bed.passes_as(sid, with_vlan_5) && !bed.passes_as(function, with_vlan_5));
    assert!(show(&bed.net.node, "-6 rule").contains("iif l5"));

    // The kernel alone, which has no functions.
    let kernel = "locators: [\"fd00:1::/48\"]\nsids: { \"fd00:1::1\": End }\ndataplane: kernel\n";
    bed.net.apply(&format!("{kernel}ports: {{ l: {{ sids: false, vlans: [5] }}, r: {{}} }}\n"));
    assert!(
        bed.passes_as(sid, with_vlan_5) && !bed.passes(sid) && !bed.passes_as(sid, with_priority)
    );
}

/// The interface of a VLAN may disappear, and return with another index.
#[test]
fn root_a_vlan_of_the_domain_returns() {
    let mut bed = Bed::new();
    bed.apply("{ l: {}, r: {} }", "");
    if !bed.add_vlan() {
        return;
    }
    bed.apply("{ l: { vlans: [5] }, r: {} }", "");
    let sid = |mark: &str| to_sid(SOURCE, mark);
    let counted = |bed: &Bed| bed.net.packets("fd00:1::1/128").unwrap_or(0);
    for _ in 0..2 {
        let before = counted(&bed);
        let mut by_xdp = || {
            assert!(bed.passes_as(sid, with_vlan_5));
            (counted(&bed) > before).then_some(())
        };
        testkit::until(std::time::Duration::from_secs(10), &mut by_xdp, || "by the kernel".into());
        crate::net::ip(&bed.net.node, &["link del dev l5"]);
        assert!(!bed.passes_as(sid, with_vlan_5), "no interface, and no entry");
        assert!(bed.reaches_sid(), "untagged");
        assert!(bed.add_vlan());
    }
}
