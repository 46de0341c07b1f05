//! Packets in which every field may be invalid.

use std::net::{Ipv4Addr, Ipv6Addr};

use wire::{Checksum, protocol};

use crate::bed::{LEFT_MAC, NODE_LEFT};

/// An IPv6 header. The payload length is that of the payload.
#[derive(Debug, Clone)]
pub(crate) struct V6 {
    pub(crate) src: Ipv6Addr,
    pub(crate) dst: Ipv6Addr,
    pub(crate) next_header: u8,
    pub(crate) hop_limit: u8,
    /// Traffic class and flow label.
    pub(crate) flow: u32,
}

impl V6 {
    pub(crate) fn new(src: &str, dst: &str, next_header: u8) -> Self {
        let (src, dst) = (src.parse().unwrap(), dst.parse().unwrap());
        Self { src, dst, next_header, hop_limit: 64, flow: 0x0ab1_2345 }
    }

    pub(crate) fn with(&self, payload: &[u8]) -> Vec<u8> {
        let mut out = (0x6000_0000 | self.flow & 0x0fff_ffff).to_be_bytes().to_vec();
        out.extend((payload.len() as u16).to_be_bytes());
        out.extend([self.next_header, self.hop_limit]);
        out.extend(self.src.octets());
        out.extend(self.dst.octets());
        out.extend(payload);
        out
    }
}

/// A routing header.
#[derive(Debug, Clone)]
pub(crate) struct Routing {
    pub(crate) next_header: u8,
    pub(crate) kind: u8,
    pub(crate) left: u8,
    pub(crate) flags: u8,
    pub(crate) tag: u16,
    /// In reverse path order, as in the SRH.
    pub(crate) segments: Vec<Ipv6Addr>,
    pub(crate) tlvs: Vec<u8>,
}

impl Routing {
    /// Creates the header for `path`, in path order, with `left` as Segments Left.
    pub(crate) fn new(path: &[&str], left: usize, next_header: u8) -> Self {
        let segments = path.iter().rev().map(|sid| sid.parse().unwrap()).collect();
        let (flags, tag, tlvs) = (0, 0, Vec::new());
        Self { next_header, kind: 4, left: left as u8, flags, tag, segments, tlvs }
    }

    pub(crate) fn with(&self, payload: &[u8]) -> Vec<u8> {
        let units = 2 * self.segments.len() + self.tlvs.len() / 8;
        let last = self.segments.len().wrapping_sub(1) as u8;
        let mut out = vec![self.next_header, units as u8, self.kind, self.left, last, self.flags];
        out.extend(self.tag.to_be_bytes());
        self.segments.iter().for_each(|segment| out.extend(segment.octets()));
        out.extend(&self.tlvs);
        out.extend(payload);
        out
    }
}

/// An IPv4 header with valid total length and checksum.
#[derive(Debug, Clone)]
pub(crate) struct V4 {
    pub(crate) src: Ipv4Addr,
    pub(crate) dst: Ipv4Addr,
    pub(crate) protocol: u8,
    pub(crate) ttl: u8,
    pub(crate) tos: u8,
    /// Flags and fragment offset.
    pub(crate) fragment: u16,
    pub(crate) options: Vec<u8>,
}

impl V4 {
    pub(crate) fn new(src: &str, dst: &str) -> Self {
        let (src, dst) = (src.parse().unwrap(), dst.parse().unwrap());
        let protocol = protocol::UDP;
        Self { src, dst, protocol, ttl: 64, tos: 0xb8, fragment: 0x4000, options: Vec::new() }
    }

    pub(crate) fn with(&self, payload: &[u8]) -> Vec<u8> {
        let header = 20 + self.options.len();
        let mut out = vec![0x40 | (header / 4) as u8, self.tos];
        out.extend(((header + payload.len()) as u16).to_be_bytes());
        out.extend([0x12, 0x34]);
        out.extend(self.fragment.to_be_bytes());
        out.extend([self.ttl, self.protocol, 0, 0]);
        out.extend(self.src.octets());
        out.extend(self.dst.octets());
        out.extend(&self.options);
        let sum = Checksum::default().with(&out).finish();
        out[10..12].copy_from_slice(&sum.to_be_bytes());
        out.extend(payload);
        out
    }
}

/// Returns a UDP datagram with this number of payload bytes.
pub(crate) fn udp(payload: usize) -> Vec<u8> {
    let length = (payload + 8) as u16;
    let mut out = [1111u16, 2222, length, 0x1234].map(u16::to_be_bytes).concat();
    out.extend((0..payload).map(|n| n as u8));
    out
}

/// Returns a tagged Ethernet frame between unknown MAC addresses.
pub(crate) fn ethernet(tags: &[u32], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![6, 0, 0, 0, 0, 1, 6, 0, 0, 0, 0, 2];
    tags.iter().for_each(|tag| out.extend(tag.to_be_bytes()));
    out.extend(ethertype.to_be_bytes());
    out.extend(payload);
    out
}

/// Returns a frame from the left peer to the node.
pub(crate) fn to_node(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = [NODE_LEFT, LEFT_MAC].concat();
    out.extend(ethertype.to_be_bytes());
    out.extend(payload);
    out
}

pub(crate) fn frame6(packet: &[u8]) -> Vec<u8> {
    to_node(0x86dd, packet)
}

pub(crate) fn frame4(packet: &[u8]) -> Vec<u8> {
    to_node(0x0800, packet)
}

/// Returns a packet with an SRH. The SID that has `left` segments after it in `path` is active.
pub(crate) fn on_path(path: &[&str], left: usize, next_header: u8, inner: &[u8]) -> Vec<u8> {
    let active = path[path.len() - 1 - left];
    let srh = Routing::new(path, left, next_header).with(inner);
    frame6(&V6::new("fd00:9::1", active, protocol::ROUTING).with(&srh))
}
