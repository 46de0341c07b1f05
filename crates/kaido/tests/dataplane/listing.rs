//! Attacks on the firewall that docs/functions.md shows: the sender chooses the argument, the
//! family and the inner packet.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use testkit::Tap;
use wire::{EthernetPacket, Ipv4, Ipv6Packet, SrhPacket, protocol};

use crate::functions::{FILE, expect, function_net, nft};
use crate::net::{Net, ip};
use crate::numbered::{Numbered, datagram};

const PAGE: &str = include_str!("../../../../docs/functions.md");

/// Returns the rules of the page.
fn listing() -> &'static str {
    let (_, rest) = PAGE.split_once("# nft -f - <<EOF\n").unwrap();
    rest.split_once("EOF\n").unwrap().0
}

/// Sends left's packets through the function with this argument.
fn choose(net: &Net, argument: &str) {
    let sid = format!("fd00:1::f:0:{argument}");
    ip(
        &net.left,
        &[
            &format!(
                "route replace 10.9.0.0/24 encap seg6 mode encap segs {sid},fd00:2::d4 dev port mtu 1500"
            ),
            &format!(
                "-6 route replace fd00:9::/64 encap seg6 mode encap segs {sid},fd00:2::d6 via \
                 fd00:a::1 mtu 1500"
            ),
        ],
    );
}

/// Returns the error of a connection: refused if it gets through, because nothing listens.
fn connect(net: &Net, to: &str) -> ErrorKind {
    let to: SocketAddr = to.parse().unwrap();
    let patience = Duration::from_secs(1);
    net.left.run(|| TcpStream::connect_timeout(&to, patience).unwrap_err().kind()).unwrap()
}

#[test]
fn root_the_documented_firewall_is_closed_to_other_families_arguments_and_tunnels() {
    let mut net = function_net();
    nft(&net, listing());
    net.start(&[]);
    net.apply(FILE);
    choose(&net, "1111");
    for to in ["10.9.0.1", "fd00:9::1"] {
        expect(&net, to, true);
    }
    for host in ["10.9.0.1", "[fd00:9::1]"] {
        let to = |port: u16| format!("{host}:{port}");
        assert_eq!(connect(&net, &to(8080)), ErrorKind::ConnectionRefused, "{host}");
        assert_eq!(connect(&net, &to(22)), ErrorKind::TimedOut, "{host}");
    }
    for argument in ["3333", "0", "1112"] {
        choose(&net, argument);
        for to in ["10.9.0.1", "fd00:9::1"] {
            expect(&net, to, false);
        }
    }
    // The function does not affect packets that the node forwards for others.
    expect(&net, "fd00:b::2", true);
}

#[test]
fn root_no_tunnel_hides_a_packet_from_the_documented_firewall() {
    let mut net = function_net();
    nft(&net, listing());
    net.start(&[]);
    net.apply(FILE);
    let numbered = Numbered::new(&net);
    let out = net.right.run(|| Tap::open("port")).unwrap();
    let ends = ["10.1.0.2", "10.9.0.1"].map(|address| address.parse().unwrap());
    // A packet to the SSH port, inside a tunnel of the sender.
    let hidden =
        Ipv4::new(ends[0], ends[1], protocol::TCP).around(&[0, 9, 0, 22, 0, 0, 0, 0]).unwrap();
    let tunnel = Ipv4::new(ends[0], ends[1], protocol::IPV4).around(&hidden).unwrap();
    numbered.tap.send(&numbered.frame(0x1111, 1, &tunnel));
    numbered.tap.send(&numbered.frame(0x1111, 2, &datagram(2, 1)));
    loop {
        let frame = out.next().expect("what is no tunnel");
        let ethernet = EthernetPacket::new_checked(&frame[..]).unwrap();
        let Ok(outer) = Ipv6Packet::new_checked(ethernet.payload()) else { continue };
        if outer.next_header() != protocol::ROUTING {
            continue;
        }
        let tag = SrhPacket::new_checked(outer.payload()).unwrap().tag();
        assert_ne!(tag, 1, "the tunnel came through");
        if tag == 2 {
            return;
        }
    }
}

#[test]
fn root_adding_a_function_behind_an_open_firewall_warns() {
    let mut net = function_net();
    net.start(&[]);
    net.apply("locators: [\"fd00:1::/48\"]\nports: { l: {}, r: {} }\n");
    let add = ["function", "add", "fd00:1::f:0:0", "--arg-bits", "16"];
    let table = |family: &str, policy: &str| {
        format!(
            "flush ruleset\ntable {family} fw {{ chain f {{ type filter hook forward priority filter; \
             policy {policy}; }}; }}"
        )
    };
    let open = "has `policy drop` for";
    assert!(net.kaido.ok(&add).contains(&format!("{open} IPv4 and IPv6")), "without any rules");
    for (family, policy, expected) in [
        ("ip", "accept", Some("IPv4 and IPv6")),
        ("ip", "drop", Some("IPv6")),
        ("inet", "drop", None),
    ] {
        nft(&net, &table(family, policy));
        let said = net.kaido.ok(&add);
        let found = said.contains(open);
        assert_eq!(found, expected.is_some(), "{said}");
        assert!(expected.is_none_or(|of| said.contains(&format!("{open} {of}:"))), "{said}");
    }
    // Rules by the names of ports match no packet of a function.
    nft(
        &net,
        "flush ruleset\ntable inet fw { chain f { type filter hook forward priority filter; policy drop; \
         iifname \"l\" accept; }; }",
    );
    let by_port = "a rule of inet fw f matches the port `l`";
    assert!(net.kaido.ok(&add).contains(by_port));
    let doctor = net.node.run(|| net.kaido.run(&["doctor"])).unwrap();
    assert!(doctor.stdout.contains(by_port), "{doctor}");
}
