//! Packets of the benchmark, and the configuration that a node needs for them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};
use netlink::{Encap, LocalAction, MAIN_TABLE, NextHop, Route};
use srv6::{EncapMode, SegmentList, Sid};
use wire::{Ethernet, Ipv4, Ipv6, Mac, Srh, Udp, ethertype, protocol};

/// MAC address of the node's port.
pub(super) const IN_MAC: netlink::Mac = netlink::Mac([2, 0, 0, 0, 0, 1]);
/// MAC address of the generator's port.
pub(super) const WORLD_IN_MAC: netlink::Mac = netlink::Mac([2, 0, 0, 0, 0, 0xa]);

/// One action of a node, with the packets that trigger it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    End,
    EndX,
    EndDx4,
    EndDx6,
    EndDt6,
    HEncaps,
    HEncapsRed,
}

impl What {
    pub(super) const ALL: [Self; 7] = [
        Self::End,
        Self::EndX,
        Self::EndDx4,
        Self::EndDx6,
        Self::EndDt6,
        Self::HEncaps,
        Self::HEncapsRed,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::End => "End",
            Self::EndX => "End.X",
            Self::EndDx4 => "End.DX4",
            Self::EndDx6 => "End.DX6",
            Self::EndDt6 => "End.DT6",
            Self::HEncaps => "H.Encaps",
            Self::HEncapsRed => "H.Encaps.Red",
        }
    }

    /// Returns the route that configures the kernel; the program takes it over.
    pub(super) fn route(self, interface: u32) -> Route {
        let local = |action| Encap::local(action);
        let headend = |mode| Encap::Seg6 { mode, segments: SegmentList(vec![Sid(FAR)]) };
        let sid = IpNet::from(IpAddr::V6(SID));
        let steered = IpNet::V4(STEERED);
        let (destination, encap) = match self {
            Self::End => (sid, local(LocalAction::End)),
            Self::EndX => (sid, local(LocalAction::EndX { nh6: NEXT6, interface: None })),
            Self::EndDx4 => (sid, local(LocalAction::EndDx4 { nh4: Ipv4Addr::UNSPECIFIED })),
            Self::EndDx6 => (sid, local(LocalAction::EndDx6 { nh6: Ipv6Addr::UNSPECIFIED })),
            Self::EndDt6 => (sid, local(LocalAction::EndDt6 { table: MAIN_TABLE })),
            Self::HEncaps => (steered, headend(EncapMode::Encaps)),
            Self::HEncapsRed => (steered, headend(EncapMode::EncapsRed)),
        };
        let hop = NextHop { via: None, interface };
        Route { encap: Some(encap), ..Route::new(destination, vec![hop]) }
    }

    /// Returns a frame to the node with an inner packet of `size` bytes on the wire, frame check
    /// sequence included.
    pub(super) fn frame(self, size: usize) -> Vec<u8> {
        let ip = size - 18;
        match self {
            Self::End | Self::EndX => ethernet(&srv6(&[SID, FAR], 1, &ipv4(DST4, ip))),
            Self::EndDx4 => ethernet(&srv6(&[SID], 0, &ipv4(DST4, ip))),
            Self::EndDx6 | Self::EndDt6 => ethernet(&srv6(&[SID], 0, &ipv6(DST6, ip.max(48)))),
            Self::HEncaps | Self::HEncapsRed => ethernet(&ipv4(STEERED_DST, ip)),
        }
    }

    /// Returns the frame of [`What::frame`] with the last four bytes of the destination address
    /// replaced.
    pub(super) fn frame_to(self, size: usize, to: Ipv4Addr) -> Vec<u8> {
        match self {
            Self::HEncaps | Self::HEncapsRed => ethernet(&ipv4(to, size - 18)),
            _ => {
                let mut frame = self.frame(size);
                frame[DESTINATION_END..DESTINATION_END + 4].copy_from_slice(&to.octets());
                frame
            }
        }
    }

    /// Returns the offsets of the 32 bits that distinguish flows, and of the checksum that covers
    /// them.
    pub(super) fn flow_at(self) -> (u32, u32) {
        match self {
            // The outer source address, which affects the network's choice of path.
            Self::End | Self::EndX => (14 + 20, 0),
            Self::EndDx4 => (14 + 40 + 24 + 16, 14 + 40 + 24 + 10),
            Self::EndDx6 | Self::EndDt6 => (14 + 40 + 24 + 36, 0),
            Self::HEncaps | Self::HEncapsRed => (14 + 16, 14 + 10),
        }
    }
}

/// Offset of the last four bytes of an IPv6 destination address in a frame.
pub(super) const DESTINATION_END: usize = 14 + 36;

pub(super) const SID: Ipv6Addr = Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 1);
/// SID of another node, after the next hop.
pub(super) const FAR: Ipv6Addr = Ipv6Addr::new(0xfd00, 2, 0, 0, 0, 0, 0, 1);
/// The next hop.
pub(super) const NEXT6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xb, 0, 0, 0, 0, 0, 2);
pub(super) const NEXT4: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
/// Outer source address of the node.
pub(super) const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 0);
pub(super) const STEERED: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 3, 0, 0), 16);
const STEERED_DST: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
const DST4: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const DST6: Ipv6Addr = Ipv6Addr::new(0xfd00, 2, 0, 0, 0, 0, 1, 1);
const SRC4: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const SRC6: Ipv6Addr = Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, 0, 1);

/// Frames of the benchmark never exceed a jumbo frame.
const FITS: &str = "the length fits";

fn ethernet(packet: &[u8]) -> Vec<u8> {
    let ethertype = ethertype::of_ip(packet);
    let mut out = Vec::new();
    Ethernet { dst: Mac(IN_MAC.0), src: Mac(WORLD_IN_MAC.0), ethertype }.emit(&mut out);
    out.extend(packet);
    out
}

/// Returns a datagram of `length` bytes in total.
fn udp(length: usize) -> Vec<u8> {
    Udp::new(1024, 9).around(&vec![0; length - 8]).expect(FITS)
}

/// Returns a plain IPv4 frame that the node forwards.
pub(super) fn plain(size: usize) -> Vec<u8> {
    ethernet(&ipv4(DST4, size - 18))
}

/// Returns a UDP packet of `length` bytes.
fn ipv4(dst: Ipv4Addr, length: usize) -> Vec<u8> {
    Ipv4::new(SRC4, dst, protocol::UDP).around(&udp(length - 20)).expect(FITS)
}

fn ipv6(dst: Ipv6Addr, length: usize) -> Vec<u8> {
    Ipv6::new(SRC6, dst, protocol::UDP).around(&udp(length - 40)).expect(FITS)
}

/// Returns `inner` with an SRH for `path`, of which `left` segments are left.
fn srv6(path: &[Ipv6Addr], left: u8, inner: &[u8]) -> Vec<u8> {
    let next =
        if ethertype::of_ip(inner) == ethertype::IPV4 { protocol::IPV4 } else { protocol::IPV6 };
    let srh = Srh { segments_left: left, ..Srh::of_path(next, path) };
    // End's packets have two segments and the last one's have one, as `flow_at` assumes.
    let active = path[path.len() - 1 - usize::from(left)];
    let payload = srh.around(inner).expect("the list is short");
    Ipv6::new(SRC6, active, protocol::ROUTING).around(&payload).expect(FITS)
}
