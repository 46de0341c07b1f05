//! "Packet too big" from outside of the domain: the kernel limits the MTU to the quoted destination.

use std::time::Duration;

use wire::{Ipv6, protocol, transport_checksum};

use super::{Bed, SOURCE, to_everybody, with_priority, with_tenant, with_vlan_5};

const TIMEOUT: Duration = Duration::from_secs(10);
/// SIDs of another node, whose route is in the domain. The kernel limits each one by itself.
const SIDS: &str = "fd00:2::";

/// Returns the message, from left, that an echo request of this node to `to` was too big.
fn too_big(node: &str, to: &str) -> (Ipv6, Vec<u8>) {
    let [left, node, to] = [SOURCE, node, to].map(|address| address.parse().unwrap());
    let quoted = Ipv6::new(node, to, protocol::ICMPV6).around(&[128, 0, 0, 0, 0, 1, 0, 1]).unwrap();
    // RFC 4443 section 3.2: the MTU is 1280.
    let mut message = [&[2, 0, 0, 0, 0, 0, 5, 0], &quoted[..]].concat();
    let sum = transport_checksum(left.into(), node.into(), protocol::ICMPV6, &message).unwrap();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    (Ipv6::new(left, node, protocol::ICMPV6), message)
}

fn plain(node: &str, to: &str) -> Vec<u8> {
    let (ip, message) = too_big(node, to);
    ip.around(&message).unwrap()
}

/// The message after two destination options headers (RFC 8200 section 4.6).
fn with_options(node: &str, to: &str) -> Vec<u8> {
    let (ip, message) = too_big(node, to);
    let options = [60, 0, 1, 4, 0, 0, 0, 0, protocol::ICMPV6, 0, 1, 4, 0, 0, 0, 0];
    Ipv6 { next_header: 60, ..ip }.around(&[&options, &message[..]].concat()).unwrap()
}

impl Bed {
    /// Sends packets as they are to this node.
    fn send(&self, packet: &[u8], dress: impl Fn(&mut Vec<u8>)) {
        let mut frame = self.frame(packet);
        dress(&mut frame);
        self.tap.send(&frame);
    }

    /// Sends the message in two fragments, the first of which ends before the quoted address.
    fn send_fragments(&self, node: &str, to: &str) {
        let (ip, message) = too_big(node, to);
        for (offset, more, part) in [(0u16, 1, &message[..16]), (16, 0, &message[16..])] {
            let [high, low] = (offset | more).to_be_bytes();
            let header = [protocol::ICMPV6, 0, high, low, 0, 0, 0, 9];
            let fragment = Ipv6 { next_header: 44, ..ip.clone() };
            self.send(&fragment.around(&[&header, part].concat()).unwrap(), |_| {});
        }
    }

    /// Returns true if the kernel limits the MTU to an address.
    fn is_limited(&self, to: &str) -> bool {
        crate::net::show(&self.net.node, &format!("-6 route get {to}")).contains("mtu 1280")
    }

    /// Sends the message in all ways, each about a SID of its own, and returns the limited ones.
    fn limited(&self, number: u32) -> Vec<String> {
        let sid = |way: u32| format!("{SIDS}{number:x}:{way}");
        self.send(&plain("fd00:a::1", &sid(0)), |_| {});
        self.send(&plain("fd00:a::1", &sid(1)), with_priority);
        self.send(&plain("fd00:a::1", &sid(2)), to_everybody);
        self.send(&plain("fd00:b::1", &sid(3)), |_| {});
        self.send(&plain("ff02::1", &sid(4)), to_everybody);
        self.send(&with_options("fd00:a::1", &sid(5)), |_| {});
        self.send_fragments("fd00:a::1", &sid(6));
        // The last one is about a packet that has left where the message comes from.
        let outside = format!("fd00:a::{number:x}");
        self.send(&plain("fd00:a::1", &outside), |_| {});
        let known = || self.is_limited(&outside).then_some(());
        testkit::until(TIMEOUT, known, || crate::net::show(&self.net.node, "-6 route show cache"));
        (0..7).map(sid).filter(|sid| self.is_limited(sid)).collect()
    }
}

#[test]
fn root_no_error_from_outside_limits_the_path_to_a_sid() {
    let bed = Bed::new();
    bed.apply("{ l: {}, r: {} }", "");
    assert_eq!(bed.limited(0x10).len(), 7, "from a node of the domain");
    let tenant = with_tenant("xdp", "", "");
    for (number, ports, more) in [
        (0x11, "{ l: { sids: false }, r: {} }", ""),
        (0x12, "{ l: { tenant: blue }, r: {} }", tenant.as_str()),
    ] {
        bed.apply(ports, more);
        let before = bed.dropped("forged-error");
        assert_eq!(bed.limited(number), [String::new(); 0], "{ports}");
        assert_eq!(bed.dropped("forged-error") - before, 7, "{ports}");
    }
    // A VLAN of the tenant on a port of the domain.
    bed.apply("{ l: {}, r: {} }", &with_tenant("xdp", "", "attachments: [{ port: l, vlan: 5 }]"));
    let before = bed.dropped("forged-error");
    bed.send(&plain("fd00:a::1", &format!("{SIDS}13:0")), with_vlan_5);
    assert!(bed.limited(0x14).contains(&format!("{SIDS}14:0")), "without the tag");
    assert_eq!(bed.dropped("forged-error") - before, 1);
}
