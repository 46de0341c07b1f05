//! Service functions that are no netfilter (End.AS, End.AD, End.AM): a namespace beside the node.
//!
//! ```text
//!             function
//!              a    b
//!              |    |
//!              f0  f1
//!  left --- l | node | r --- right
//! ```
//! What left sends to 10.9.0.1 and to fd00:9::1 goes by fd00:1::f:0:1111, and the answers by
//! fd00:1::f:0:2222.

mod am;
mod attacks;
mod bump;
mod changes;
mod routed;
mod statics;

use std::time::Duration;

use netlink::{Namespace, Offload, set_offload};
use serde_json::Value;
use testkit::{Tap, until};
use wire::{
    Ethernet, EthernetPacket, Ipv6, Ipv6Packet, Mac, Srh, SrhPacket, Udp, UdpPacket, ethertype,
    protocol,
};

use crate::functions::{function_net, nft_in};
use crate::net::{Net, become_router, ip, join};

pub(crate) const HEAD: &str = "\
source: \"fd00:1::\"
locators: [\"fd00:1::/48\"]
ports: { l: {}, r: {} }
sids:
";
const THERE: &str = "fd00:1::f:0:1111";
const BACK: &str = "fd00:1::f:0:2222";

/// What a function does that routes: other sources.
const NAT: &str = "table inet nat { chain post { type nat hook postrouting priority srcnat; \
     oifname b ip saddr 10.1.0.2 snat ip to 10.7.0.2; \
     oifname b ip6 saddr fd00:a::2 snat ip6 to fd00:7::2; }; }";

struct Bed {
    net: Net,
    function: Namespace,
}

impl Bed {
    /// With a function that is not there yet.
    fn new() -> Self {
        let net = function_net();
        let function = Namespace::unnamed().unwrap();
        let configure = || {
            become_router();
            for key in ["conf/all/rp_filter", "conf/default/rp_filter"] {
                netlink::sysctl::write(&format!("ipv4/{key}"), "0").unwrap();
            }
        };
        function.run(configure).unwrap();
        // Neighbours are asked for from the first moment.
        let at_once = || netlink::sysctl::write("ipv6/conf/default/accept_dad", "0").unwrap();
        function.run(at_once).unwrap();
        net.node.run(at_once).unwrap();
        join(&net.node, "f0", &function, "a");
        join(&net.node, "f1", &function, "b");
        for (namespace, names) in [(&net.node, ["f0", "f1"]), (&function, ["a", "b"])] {
            for name in names {
                ip(namespace, &[&format!("link set dev {name} mtu 1700 up")]);
            }
        }
        // Both ways by the node's SIDs.
        let there = |end| format!("encap seg6 mode encap segs {THERE},{end}");
        let back = |end| format!("encap seg6 mode encap segs {BACK},{end}");
        let (four, six) = (there("fd00:2::d4"), there("fd00:2::d6"));
        ip(
            &net.left,
            &[
                &format!("route replace 10.9.0.0/24 {four} dev port mtu 1500"),
                &format!("-6 route replace fd00:9::/64 {six} via fd00:a::1 src fd00:a::2 mtu 1500"),
                "-6 route add fd00:4::d4/128 encap seg6local action End.DX4 nh4 0.0.0.0 dev port",
                "-6 route add fd00:4::d6/128 encap seg6local action End.DT6 table 255 dev port",
            ],
        );
        let (four, six) = (back("fd00:4::d4"), back("fd00:4::d6"));
        ip(&net.node, &["-6 route add fd00:4::/48 via fd00:a::2"]);
        for to in ["10.0.0.0/8", "10.7.0.0/24"] {
            let to = format!("route replace {to} {four} via inet6 fd00:b::1 dev port src 10.9.0.1");
            ip(&net.right, &[&format!("{to} mtu 1500")]);
        }
        for to in ["fd00:a::/64", "fd00:7::/64"] {
            let to = format!("-6 route replace {to} {six} via fd00:b::1 src fd00:9::1 mtu 1500");
            ip(&net.right, &[&to]);
        }
        // The outer packets' own way.
        ip(&net.right, &["-6 route add fd00:1::/48 via fd00:b::1"]);
        // What is to nobody there does not come again.
        ip(&net.right, &["-6 route add blackhole fd00:2::/48"]);
        ip(&net.left, &["-6 route add fd00:1::/48 via fd00:a::1"]);
        Self { net, function }
    }

    /// The function is a bump in the wire: what comes in by one end leaves by the other.
    fn bridged() -> Self {
        let bed = Self::new();
        ip(
            &bed.function,
            &[
                "link add bridge type bridge",
                "link set dev bridge up",
                "link set dev a master bridge",
                "link set dev b master bridge",
            ],
        );
        bed
    }

    /// The function routes, and changes sources.
    fn routed() -> Self {
        let bed = Self::new();
        ip(
            &bed.net.node,
            &[
                "addr add 10.5.0.1/24 dev f0",
                "addr add 10.6.0.1/24 dev f1",
                "addr add fd00:5::1/64 dev f0 nodad",
                "addr add fd00:6::1/64 dev f1 nodad",
            ],
        );
        ip(
            &bed.function,
            &[
                "addr add 10.5.0.2/24 dev a",
                "addr add 10.6.0.2/24 dev b",
                "addr add fd00:5::2/64 dev a nodad",
                "addr add fd00:6::2/64 dev b nodad",
                "route add default via 10.6.0.1",
                "-6 route add default via fd00:6::1",
                "route add 10.1.0.0/24 via 10.5.0.1",
                "-6 route add fd00:a::/64 via fd00:5::1",
            ],
        );
        nft_in(&bed.function, NAT);
        bed
    }

    /// Starts the daemon with these lines under `sids:`.
    fn start(&mut self, sids: &str) {
        self.net.start(&[]);
        self.apply(sids);
    }

    fn apply(&self, sids: &str) {
        // One is always there.
        self.net.apply(&format!("{HEAD}  fd00:1::e: End\n{sids}"));
    }

    fn json(&self) -> Value {
        self.net.show()
    }

    /// What a SID has had and what came back.
    fn counts(&self, sid: &str) -> [u64; 2] {
        let shown = self.json();
        let sids = shown["sids"].as_array().unwrap();
        let name = format!("{sid}/128");
        let sid = sids.iter().find(|one| one["name"] == name.as_str()).unwrap();
        [&sid["packets"], &sid["returned"]].map(|count| count.as_u64().unwrap())
    }

    /// How many packets were dropped for a reason.
    fn dropped(&self, reason: &str) -> u64 {
        let shown = self.json();
        let reasons = shown["reasons"].as_array().unwrap();
        let reason = reasons.iter().find(|one| one["reason"] == reason).unwrap();
        reason["dropped"].as_u64().unwrap()
    }

    /// Waits until so many have been dropped for a reason.
    #[track_caller]
    fn expect_dropped(&self, reason: &str, count: u64) {
        until(
            Duration::from_secs(5),
            || (self.dropped(reason) == count).then_some(()),
            || format!("{reason}: {} and not {count}\n{:#}", self.dropped(reason), self.reasons()),
        );
    }

    fn reasons(&self) -> Value {
        let shown = self.json();
        let all = shown["reasons"].as_array().unwrap().iter();
        all.filter(|one| one["passed"] != 0 || one["dropped"] != 0).cloned().collect()
    }

    /// Lets the hosts' ports cut what TCP sends, or not.
    fn set_gso(&self, on: bool) {
        for host in [&self.net.left, &self.net.right] {
            host.run(|| {
                let switch = if on { "on" } else { "off" };
                let mut set = std::process::Command::new("ethtool");
                assert!(set.args(["-K", "port", "gso", switch]).status().unwrap().success());
                set_offload("port", Offload::Gro, true).unwrap();
            })
            .unwrap();
        }
    }

    /// Whether right gets nothing more for a moment; `tap` has its frames. Others than UDP's do not
    /// count.
    fn is_quiet(&self, tap: &Tap) -> bool {
        // One that gets through comes behind all that did not.
        let marker = Marker::new(&self.net);
        marker.send();
        loop {
            let frame = tap.next().expect("the marker");
            if marker.is(&frame) {
                return true;
            }
            if datagram_of(&frame).is_some() {
                return false;
            }
        }
    }
}

/// The inner or only datagram of a frame of IPv6, with the headers in front of it.
fn datagram_of(frame: &[u8]) -> Option<(Ipv6, Option<Srh>, Vec<u8>)> {
    let ethernet = EthernetPacket::new_checked(frame).ok()?;
    let outer = Ipv6Packet::new_checked(ethernet.payload()).ok()?;
    let header = Ipv6::parse(&outer);
    let (srh, next, rest) = if outer.next_header() == protocol::ROUTING {
        let srh = SrhPacket::new_checked(outer.payload()).ok()?;
        (Some(Srh::parse(&srh)), srh.next_header(), srh.payload().to_vec())
    } else {
        (None, outer.next_header(), outer.payload().to_vec())
    };
    let is_data = match next {
        protocol::UDP => true,
        protocol::IPV4 => rest.get(9) == Some(&protocol::UDP),
        protocol::IPV6 => rest.get(6) == Some(&protocol::UDP),
        _ => false,
    };
    is_data.then_some((header, srh, rest))
}

/// The link-layer addresses of left's port and the node's.
fn stations(net: &Net) -> [Mac; 2] {
    let mac = |namespace: &Namespace, name: &str| {
        let link = || netlink::Handle::new().unwrap().link(name).unwrap();
        Mac(namespace.run(link).unwrap().mac.unwrap().0)
    };
    [mac(&net.left, "port"), mac(&net.node, "l")]
}

/// A frame of IPv6 from left to the node.
fn frame(net: &Net, packet: &[u8]) -> Vec<u8> {
    let [src, dst] = stations(net);
    let mut frame = Vec::new();
    Ethernet { dst, src, ethertype: ethertype::IPV6 }.emit(&mut frame);
    frame.extend(packet);
    frame
}

/// A datagram that the node forwards as any router.
struct Marker {
    tap: Tap,
    frame: Vec<u8>,
}

impl Marker {
    fn new(net: &Net) -> Self {
        let tap = net.left.run(|| Tap::open("port")).unwrap();
        let ends = ["fd00:a::2", "fd00:b::2"].map(|address| address.parse().unwrap());
        let udp = Udp::new(9, 9).around(b"marker").unwrap();
        let packet = Ipv6::new(ends[0], ends[1], protocol::UDP).around(&udp).unwrap();
        Self { tap, frame: frame(net, &packet) }
    }

    fn send(&self) {
        self.tap.send(&self.frame);
    }

    fn is(&self, frame: &[u8]) -> bool {
        datagram_of(frame).is_some_and(|(_, _, rest)| {
            UdpPacket::new_checked(&rest[..]).is_ok_and(|udp| udp.payload() == b"marker")
        })
    }
}
