//! The kernel's routes are imported, and handed back.

use std::time::Duration;

use testkit::until;

use crate::net::{FILE, Net, ip, show};

#[test]
fn root_the_kernels_sids_are_taken_over_and_given_back() {
    let mut net = Net::new();
    assert!(net.ping(1), "the kernel alone forwards");
    net.start(&[]);
    net.apply(FILE);
    assert!(show(&net.node, "link show dev l").contains("xdp"));
    assert!(net.ping(5));
    assert!(net.packets("fd00:1::1/128").unwrap() >= 5, "{}", net.show());

    // A SID is added, and one is removed, without a command.
    ip(&net.node, &["-6 route add fd00:1::2/128 encap seg6local action End.DT6 table 254 dev r"]);
    let limit = Duration::from_secs(5);
    until(limit, || net.packets("fd00:1::2/128"), || net.show().to_string());
    ip(&net.node, &["-6 route del fd00:1::2/128"]);
    let gone = || net.packets("fd00:1::2/128").is_none().then_some(());
    until(limit, gone, || net.show().to_string());
    assert!(net.ping(5));

    net.kaido.ok(&["dataplane", "detach"]);
    assert!(!show(&net.node, "link show dev l").contains("xdp"));
    assert!(net.ping(5), "the kernel has it back");
    net.end();
    let left = std::fs::read_dir(net.state()).unwrap().count();
    assert_eq!(left, 0, "no socket, no pin, no file");
}

#[test]
fn root_adjacencies_follow_routes_and_neighbors() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    assert!(net.ping(5));
    // The next hop gets another MAC address, so the old one becomes invalid.
    ip(
        &net.right,
        &[
            "link set dev port down",
            "link set dev port address 02:00:00:00:09:09",
            "link set dev port up",
        ],
    );
    ip(
        &net.right,
        &[
            "addr replace fd00:b::2/64 dev port nodad",
            "-6 route replace default via fd00:b::1",
            "-6 route replace fd00:2::d6/128 encap seg6local action End.DT6 table 255 dev port",
        ],
    );
    ip(&net.node, &["neigh flush dev r"]);
    until(Duration::from_secs(10), || net.ping(1).then_some(()), || net.show().to_string());
    // Without a route the cached one must not be used.
    ip(&net.node, &["-6 route del fd00:2::/48"]);
    assert!(!net.ping(1));
    ip(&net.node, &["-6 route add fd00:2::/48 via fd00:b::2"]);
    until(Duration::from_secs(5), || net.ping(1).then_some(()), || net.show().to_string());
    let before = net.packets("fd00:1::1/128").unwrap();
    assert!(net.ping(5));
    assert!(net.packets("fd00:1::1/128").unwrap() >= before + 5);
}
