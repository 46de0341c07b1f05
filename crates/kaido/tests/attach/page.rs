//! The example of docs/p4-attach.md.

use testkit::{Page, Said};

use crate::bed::Bed;

const PAGE: &str = include_str!("../../../../docs/p4-attach.md");

#[test]
fn root_the_page_works_as_it_is_written() {
    let bed = Bed::new();
    for line in ["p1 down", "p1 name eth1", "eth1 up"] {
        bed.at_switch(&format!("ip link set {line}"));
    }
    bed.at_switch("ip addr add 192.0.2.7/24 dev eth1");
    Said::of_words(&bed.hosts.h1, "ip addr add 192.0.2.1/24 dev eth0").ok();
    let page = Page::part(PAGE, "# A P4 program on an interface")
        .wait_after("p4 attach", "ip link show dev p4-eth1 up >/dev/null 2>&1");
    let said = bed.hosts.switch.run(|| page.run(&bed.kaido)).expect("root enters a namespace");
    assert!(said.contains("3 received") && said.contains("entry added"), "{said}");
    assert!(bed.link("p4-eth1").is_none(), "{said}");
}
