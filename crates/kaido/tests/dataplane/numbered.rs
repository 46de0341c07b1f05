//! Numbered frames for a service function, which prove that headers are not mixed up.

use std::net::Ipv6Addr;
use std::time::Duration;

use testkit::{Tap, pause};
use wire::{
    Ethernet, EthernetPacket, Ipv4, Ipv4Packet, Ipv6, Ipv6Packet, Mac, Srh, SrhPacket, Udp,
    UdpPacket, ethertype, protocol,
};

use crate::net::Net;

/// Number of frames in a burst: the veth after XDP takes 256.
const BURST: u32 = 64;

/// Frames from left to the function. Each frame has its number in the outer source, in the SRH's
/// tag and in the inner payload.
pub(crate) struct Numbered {
    pub(crate) tap: Tap,
    from: Mac,
    to: Mac,
}

pub(crate) fn outer_source(number: u32) -> Ipv6Addr {
    Ipv6Addr::from(0xfd00_000c_u128 << 96 | u128::from(number))
}

impl Numbered {
    pub(crate) fn new(net: &Net) -> Self {
        let mac = |namespace: &netlink::Namespace, name: &str| {
            let link = || netlink::Handle::new().unwrap().link(name).unwrap();
            Mac(namespace.run(link).unwrap().mac.unwrap().0)
        };
        let tap = net.left.run(|| Tap::open("port")).unwrap();
        Self { tap, from: mac(&net.left, "port"), to: mac(&net.node, "l") }
    }

    /// Returns a frame to the function with this mark.
    pub(crate) fn frame(&self, mark: u16, number: u32, inner: &[u8]) -> Vec<u8> {
        let function = format!("fd00:1::f:0:{mark:x}");
        let path = [function.as_str(), "fd00:2::d4"].map(|sid| sid.parse().unwrap());
        let srh = Srh { tag: number as u16, ..Srh::of_path(protocol::IPV4, &path) };
        let outer = Ipv6::new(outer_source(number), path[0], protocol::ROUTING);
        let outer = outer.around(&srh.around(inner).unwrap()).unwrap();
        let mut frame = Vec::new();
        Ethernet { dst: self.to, src: self.from, ethertype: ethertype::IPV6 }.emit(&mut frame);
        frame.extend(outer);
        frame
    }

    /// Sends these numbers, no faster than the node can process them.
    pub(crate) fn send(&self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let inner = datagram(number, 1111 + (number % 2) as u16);
            self.tap.send(&self.frame(0x1111, number, &inner));
            if number % BURST == BURST - 1 {
                pause(Duration::from_micros(500));
            }
        }
    }
}

/// Returns the number that a frame carries, after a check that all its headers have the same
/// number.
fn number_of(frame: &[u8]) -> Option<u32> {
    let ethernet = EthernetPacket::new_checked(frame).ok()?;
    let outer = Ipv6Packet::new_checked(ethernet.payload()).ok()?;
    if outer.next_header() != protocol::ROUTING {
        return None;
    }
    let srh = SrhPacket::new_checked(outer.payload()).unwrap();
    let inner = Ipv4Packet::new_checked(srh.payload()).unwrap();
    let udp = UdpPacket::new_checked(inner.payload()).unwrap();
    let number = u32::from_be_bytes(udp.payload().try_into().unwrap());
    assert_eq!(outer.src(), outer_source(number));
    assert_eq!(outer.dst(), "fd00:2::d4".parse::<Ipv6Addr>().unwrap());
    assert_eq!((srh.tag(), srh.segments_left()), (number as u16, 0));
    assert!(inner.checksum_ok());
    Some(number)
}

/// Receives `count` numbers, each of them once.
pub(crate) fn receive(tap: &Tap, count: u32) {
    let mut seen = vec![false; count as usize];
    let mut left = count;
    while left > 0 {
        let frame = tap.next().unwrap_or_else(|| panic!("{left} of {count} did not come"));
        let Some(number) = number_of(&frame) else { continue };
        let seen = seen.get_mut(number as usize).expect("a number that was sent");
        assert!(!std::mem::replace(seen, true), "{number} came twice");
        left -= 1;
    }
}

/// Returns an inner UDP packet that carries the number.
pub(crate) fn datagram(number: u32, port: u16) -> Vec<u8> {
    let ends = ["10.1.0.2", "10.9.0.1"].map(|address| address.parse().unwrap());
    let udp = Udp::new(port, 2222).around(&number.to_be_bytes()).unwrap();
    Ipv4::new(ends[0], ends[1], protocol::UDP).around(&udp).unwrap()
}
