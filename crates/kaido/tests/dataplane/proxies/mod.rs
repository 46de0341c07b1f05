//! Service functions other than netfilter (End.AS, End.AD, End.AM): a namespace next to the node.
//!
//! ```text
//!             function
//!              a    b
//!              |    |
//!              f0  f1
//!  left --- l | node | r --- right
//! ```
//! Left's packets to 10.9.0.1 and to fd00:9::1 pass fd00:1::f:0:1111, and the answers pass
//! fd00:1::f:0:2222.

mod am;
mod attacks;
mod bump;
mod chain;
mod changes;
mod hostile;
mod routed;
mod statics;

use std::process::Command;
use std::time::{Duration, Instant};

use netlink::{Namespace, Offload, set_offload};
use serde_json::Value;
use testkit::{Tap, pause, until};
use wire::{
    Ethernet, EthernetPacket, Ipv4, Ipv6, Ipv6Packet, Mac, Srh, SrhPacket, Udp, UdpPacket,
    ethertype, protocol,
};

use crate::functions::{function_net, nft_in, stream};
use crate::net::{Net, become_router, ip, join, slower};

pub(crate) const HEAD: &str = "\
source: \"fd00:1::\"
locators: [\"fd00:1::/48\"]
ports: { l: {}, r: {} }
sids:
";
const THERE: &str = "fd00:1::f:0:1111";
const BACK: &str = "fd00:1::f:0:2222";

/// Longer than a packet takes through the kernel.
const MOMENT: Duration = Duration::from_millis(50);

/// A routing function's rules: it changes the sources.
const NAT: &str = "table inet nat { chain post { type nat hook postrouting priority srcnat; \
     oifname b ip saddr 10.1.0.2 snat ip to 10.7.0.2; \
     oifname b ip6 saddr fd00:a::2 snat ip6 to fd00:7::2; }; }";

struct Bed {
    net: Net,
    function: Namespace,
}

impl Bed {
    /// Creates a bed with a function that is not configured yet.
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
        // Skip duplicate address detection, so that neighbors can be resolved immediately.
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
        // Both directions pass the node's SIDs.
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
        // The return path of the outer packets.
        ip(&net.right, &["-6 route add fd00:1::/48 via fd00:b::1"]);
        // Drop packets to unused addresses there, so that they do not come back.
        ip(&net.right, &["-6 route add blackhole fd00:2::/48"]);
        ip(&net.left, &["-6 route add fd00:1::/48 via fd00:a::1"]);
        Self { net, function }
    }

    /// Creates a bed with a bump in the wire as its function: packets enter at one end and leave at
    /// the other.
    fn bridged() -> Self {
        let bed = Self::new();
        bed.bridge(["a", "b"]);
        bed
    }

    /// Bridges two interfaces of the function.
    fn bridge(&self, ends: [&str; 2]) {
        ip(&self.function, &["link add bridge type bridge", "link set dev bridge up"]);
        for end in ends {
            ip(&self.function, &[&format!("link set dev {end} master bridge")]);
        }
    }

    /// Creates a bed with a function that routes and changes sources.
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
        // One SID always exists.
        self.net.apply(&format!("{HEAD}  fd00:1::e: End\n{sids}"));
    }

    fn json(&self) -> Value {
        self.net.show()
    }

    /// Returns the numbers of packets sent to a SID and returned.
    fn counts(&self, sid: &str) -> [u64; 2] {
        let shown = self.json();
        let sids = shown["sids"].as_array().unwrap();
        let name = format!("{sid}/128");
        let sid = sids.iter().find(|one| one["name"] == name.as_str()).unwrap();
        [&sid["packets"], &sid["returned"]].map(|count| count.as_u64().unwrap())
    }

    /// Waits until a SID has these counts of sent and returned packets.
    #[track_caller]
    fn expect_counts(&self, sid: &str, counts: [u64; 2]) {
        until(
            Duration::from_secs(5),
            || (self.counts(sid) == counts).then_some(()),
            || format!("{counts:?} and not {:?}: {:#}", self.counts(sid), self.reasons()),
        );
    }

    /// Returns the number of packets dropped for a reason.
    fn dropped(&self, reason: &str) -> u64 {
        self.counted(reason, "dropped")
    }

    /// Returns the number of packets left to the kernel for a reason.
    fn passed(&self, reason: &str) -> u64 {
        self.counted(reason, "passed")
    }

    fn counted(&self, reason: &str, how: &str) -> u64 {
        let shown = self.json();
        let reasons = shown["reasons"].as_array().unwrap();
        let reason = reasons.iter().find(|one| one["reason"] == reason).unwrap();
        reason[how].as_u64().unwrap()
    }

    /// Waits until this number of packets has been dropped for a reason.
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

    /// Switches segmentation offload of the hosts' ports on or off.
    fn set_gso(&self, on: bool) {
        for host in [&self.net.left, &self.net.right] {
            host.run(|| {
                let switch = if on { "on" } else { "off" };
                let mut set = Command::new("ethtool");
                assert!(set.args(["-K", "port", "gso", switch]).status().unwrap().success());
                set_offload("port", Offload::Gro, true).unwrap();
            })
            .unwrap();
        }
    }

    /// Returns true if the function reaches the node itself, through the return interface.
    fn reaches_node(&self) -> bool {
        let ping = || Command::new("ping").args(["-c1", "-W1", "10.6.0.1"]).output();
        self.function.run(ping).unwrap().unwrap().status.success()
    }

    /// Sends streams from left to right, with and without GSO, and checks that they arrive
    /// unchanged.
    #[track_caller]
    fn expect_streams(&self) {
        let bytes = ((64 << 20) as f64 / slower() / slower()) as usize >> 16 << 16;
        for gso in [true, false] {
            self.set_gso(gso);
            for to in ["10.9.0.1:7001", "[fd00:9::1]:7001"] {
                let started = Instant::now();
                assert_eq!(stream(&self.net, to, bytes), bytes, "{to} {:#}", self.reasons());
                let seconds = started.elapsed().as_secs_f64();
                println!("{to}, gso {gso}: {:.0} Mbit/s", bytes as f64 * 8e-6 / seconds);
            }
        }
    }

    /// Returns true if right has received no datagram, in any headers; `tap` has its frames. Must
    /// be called after all sent packets have been counted.
    fn is_quiet(&self, tap: &Tap) -> bool {
        // Packets that leave through the kernel may still be in a veth, where the marker would
        // overtake them.
        pause(MOMENT.mul_f64(slower()));
        let marker = Marker::new(&self.net);
        marker.send();
        loop {
            let frame = tap.next().expect("the marker");
            if marker.is(&frame) {
                return true;
            }
            if has_datagram(&frame) {
                return false;
            }
        }
    }
}

/// Returns true if a frame contains a UDP datagram of either family, in any headers.
fn has_datagram(frame: &[u8]) -> bool {
    EthernetPacket::new_checked(frame).is_ok_and(|ethernet| match ethernet.ethertype() {
        ethertype::IPV4 => is_datagram(protocol::IPV4, ethernet.payload()),
        ethertype::IPV6 => is_datagram(protocol::IPV6, ethernet.payload()),
        _ => false,
    })
}

/// Returns true if a header of this protocol is UDP, or is followed by UDP.
fn is_datagram(header: u8, bytes: &[u8]) -> bool {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let (next, length) = match header {
        protocol::UDP => return true,
        protocol::IPV4 => (byte(9), 4 * usize::from(byte(0) & 0xf)),
        protocol::IPV6 => (byte(6), 40),
        protocol::ROUTING => (byte(0), 8 + 8 * usize::from(byte(1))),
        _ => return false,
    };
    length > 0 && bytes.get(length..).is_some_and(|rest| is_datagram(next, rest))
}

#[test]
fn datagrams_are_found_in_all_headers() {
    let mac = Mac([2, 9, 9, 9, 9, 9]);
    let four = |next| {
        let ends = [1, 2].map(|end| [192, 0, 2, end].into());
        (ethertype::IPV4, Ipv4::new(ends[0], ends[1], next).around(&[0; 8]).unwrap())
    };
    let six = |next, payload: &[u8]| {
        let ends = [THERE, BACK].map(|end| end.parse().unwrap());
        (ethertype::IPV6, Ipv6::new(ends[0], ends[1], next).around(payload).unwrap())
    };
    let routed = |next, payload: &[u8]| {
        let srh = Srh::of_path(next, &[THERE, BACK].map(|sid| sid.parse().unwrap()));
        six(protocol::ROUTING, &srh.around(payload).unwrap())
    };
    let has = |(ethertype, packet): (u16, Vec<u8>)| {
        let mut frame = Vec::new();
        Ethernet { dst: mac, src: mac, ethertype }.emit(&mut frame);
        frame.extend(packet);
        has_datagram(&frame)
    };
    assert!(has(four(protocol::UDP)) && has(six(protocol::UDP, &[0; 8])));
    assert!(has(six(protocol::IPV4, &four(protocol::UDP).1)));
    assert!(has(routed(protocol::IPV4, &four(protocol::UDP).1)));
    assert!(has(routed(protocol::IPV6, &six(protocol::UDP, &[0; 8]).1)));
    assert!(!has(four(protocol::ICMP)) && !has(six(protocol::ICMPV6, &[0; 8])));
    assert!(!has(routed(protocol::IPV4, &four(protocol::ICMP).1)));
    assert!(!has((ethertype::IPV4, Vec::new())));
}

/// Returns the inner or only datagram of an IPv6 frame, with the outer headers.
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

/// Returns the MAC addresses of left's port and the node's.
fn stations(net: &Net) -> [Mac; 2] {
    let mac = |namespace: &Namespace, name: &str| {
        let link = || netlink::Handle::new().unwrap().link(name).unwrap();
        Mac(namespace.run(link).unwrap().mac.unwrap().0)
    };
    [mac(&net.left, "port"), mac(&net.node, "l")]
}

/// Returns an IPv6 frame from left to the node.
fn frame(net: &Net, packet: &[u8]) -> Vec<u8> {
    let [src, dst] = stations(net);
    let mut frame = Vec::new();
    Ethernet { dst, src, ethertype: ethertype::IPV6 }.emit(&mut frame);
    frame.extend(packet);
    frame
}

/// A datagram that the node forwards like any router.
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
