//! Path MTUs that the kernel learns from forged ICMP errors (RFC 8201, RFC 1191): they limit packets
//! of this node, and none that it forwards.

use std::process::Command;
use std::time::Duration;

use testkit::{Tap, until};
use wire::{Ethernet, Ipv4, Ipv6, ethertype, protocol, transport_checksum};

use crate::net::{Net, ip, show};

const TIMEOUT: Duration = Duration::from_secs(10);
/// MTUs of the errors.
const MTU6: u16 = 1280;
const MTU4: u16 = 552;

/// Returns "packet too big" about an echo request of the node (RFC 4443 section 3.2).
fn too_big(to: &str) -> Vec<u8> {
    let [left, node, to] = ["fd00:a::2", "fd00:a::1", to].map(|address| address.parse().unwrap());
    let quoted = Ipv6::new(node, to, protocol::ICMPV6).around(&[128, 0, 0, 0, 0, 1, 0, 1]).unwrap();
    let mut message = [&[2, 0, 0, 0, 0, 0][..], &MTU6.to_be_bytes(), &quoted[..]].concat();
    let sum = transport_checksum(left.into(), node.into(), protocol::ICMPV6, &message).unwrap();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    Ipv6::new(left, node, protocol::ICMPV6).around(&message).unwrap()
}

/// Returns "fragmentation needed" about an echo reply of the node (RFC 792).
fn fragmentation_needed(to: &str) -> Vec<u8> {
    let [left, node, to] = ["10.1.0.2", "10.1.0.1", to].map(|address| address.parse().unwrap());
    let quoted = Ipv4::new(node, to, protocol::ICMP).around(&[0; 8]).unwrap();
    let mut message = [&[3, 4, 0, 0, 0, 0][..], &MTU4.to_be_bytes(), &quoted[..]].concat();
    let sum = wire::Checksum::default().with(&message).finish();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    Ipv4::new(left, node, protocol::ICMP).around(&message).unwrap()
}

/// Returns true if all packets of this size get an answer, which must not be fragmented on the way.
fn passes(net: &Net, to: &str, bytes: u32) -> bool {
    let line = format!("-n -q -M do -c 5 -i 0.05 -W 2 -s {bytes} {to}");
    let ping = || Command::new("ping").args(line.split(' ')).output().unwrap();
    String::from_utf8_lossy(&net.left.run(ping).unwrap().stdout).contains(" 5 received")
}

#[test]
fn root_forged_path_mtus_do_not_limit_forwarded_packets() {
    let mut net = Net::new();
    ip(&net.left, &["addr add 10.1.0.2/24 dev port", "route add default via 10.1.0.1"]);
    ip(&net.node, &["addr add 10.1.0.1/24 dev l", "addr add 10.9.0.2/24 dev r"]);
    ip(&net.right, &["addr add 10.9.0.1/24 dev port", "route add 10.1.0.0/24 via 10.9.0.2"]);
    let to_sid = "encap seg6 mode encap segs fd00:1::46 via inet6 fd00:a::1 dev port mtu 1700";
    ip(&net.left, &[&format!("route add 10.9.0.1/32 {to_sid}")]);
    ip(
        &net.left,
        &["-6 route replace fd00:9::/64 encap seg6 mode encap segs fd00:1::1,fd00:2::d6 via \
         fd00:a::1 mtu 1700"],
    );
    net.start(&[]);
    // The kernel cannot look a table up for End.DT46 without its VRF: XDP alone has the SID.
    net.apply(
        "locators: [\"fd00:1::/48\"]\nports: { l: {}, r: {} }\nsids:\n  fd00:1::1: End\n  \
         fd00:1::46: {behavior: End.DT46, table: 254}\n",
    );
    let all = [("fd00:9::1", 1400), ("10.9.0.1", 1400)];
    let pass = || all.iter().all(|(to, bytes)| passes(&net, to, *bytes)).then_some(());
    until(TIMEOUT, pass, || "large packets do not pass before the errors".into());

    let [dst, src] = crate::edge::stations(&net.node, &net.left);
    let tap = net.left.run(|| Tap::open("port")).unwrap();
    for packet in [too_big("fd00:2::d6"), too_big("fd00:b::2"), fragmentation_needed("10.9.0.1")] {
        let mut frame = Vec::new();
        Ethernet { dst, src, ethertype: ethertype::of_ip(&packet) }.emit(&mut frame);
        tap.send(&[frame, packet].concat());
    }
    for (line, mtu) in [
        ("-6 route get fd00:2::d6", MTU6),
        ("-6 route get fd00:b::2", MTU6),
        ("route get 10.9.0.1", MTU4),
    ] {
        let got = || show(&net.node, line);
        until(TIMEOUT, || got().contains(&format!("mtu {mtu}")).then_some(()), got);
    }
    // Each packet looks its route up again.
    ip(&net.node, &["-6 route add fd00:77::/64 dev r", "route add 10.77.0.0/24 dev r"]);
    for (to, bytes) in all {
        assert!(passes(&net, to, bytes), "{to}: {}", net.show()["reasons"]);
    }
    // A locked MTU applies, which is followed.
    ip(&net.node, &["-6 route replace fd00:2::/48 via fd00:b::2 mtu lock 1300"]);
    let stops = || (!passes(&net, "fd00:9::1", 1400)).then_some(());
    until(TIMEOUT, stops, || "the locked MTU does not apply".into());
    assert!(passes(&net, "fd00:9::1", 1000));
    ip(&net.node, &["-6 route replace fd00:2::/48 via fd00:b::2"]);
    // Left has learned it, too.
    ip(&net.left, &["-6 route flush cache"]);
    until(TIMEOUT, pass, || "the locked MTU still applies".into());
    net.kaido.ok(&["dataplane", "detach"]);
    net.end();
}
