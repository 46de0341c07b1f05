//! The frames of the stream, and the valid results for each frame.

use std::net::Ipv6Addr;

use bpf::proof::{Expected, PROOF, Sample};
use wire::{Ethernet, Ipv4, Ipv6, Mac, Srh, Udp, ethertype, protocol};

use super::state::{State, Way};

pub(crate) const NODE_LEFT: Mac = Mac([2, 0, 0, 0, 0, 1]);
pub(crate) const WORLD_LEFT: Mac = Mac([2, 0, 0, 0, 0, 0xa]);
/// The outer source of packets that the node encapsulates.
const SOURCE: &str = "fd00:1::";
/// The source of the world's packets to SIDs.
const WORLD: &str = "fd00:77::1";
const ETHERNET: usize = 14;

/// The node's processing of a kind of frames, in the order of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// IPv4 of tenant blue, which has one tag.
    Blue4,
    /// The same addresses of tenant green, which has two.
    Green4,
    /// IPv6 of tenant blue, spread over two lists.
    Blue6,
    End,
    EndX,
    EndDt6,
    EndDx4,
    EndB6,
    /// An End that is the kernel's own.
    Imported,
}

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Blue4,
        Self::Green4,
        Self::Blue6,
        Self::End,
        Self::EndX,
        Self::EndDt6,
        Self::EndDx4,
        Self::EndB6,
        Self::Imported,
    ];

    /// Returns the kinds of a state. The slice must not change: its indexes are in the frames.
    pub(crate) fn all(state: &State) -> &'static [Self] {
        // Skip the tenants' kinds.
        if state.plain { &Self::ALL[3..] } else { &Self::ALL }
    }

    /// Returns the SID that such a frame is sent to; `None` for a tenant's frame.
    fn sid(self) -> Option<&'static str> {
        Some(match self {
            Self::Blue4 | Self::Green4 | Self::Blue6 => return None,
            Self::End => "fd00:1::e",
            Self::EndX => "fd00:1::a",
            Self::EndDt6 => "fd00:1::d6",
            Self::EndDx4 => "fd00:1::d4",
            Self::EndB6 => "fd00:1::b6",
            Self::Imported => "fd00:1::f",
        })
    }

    /// Returns the frame as it is sent.
    pub(crate) fn sample(self) -> Sample {
        let (tags, packet): (&[u16], Vec<u8>) = match self {
            Self::Blue4 => (&[10], inner4(64)),
            Self::Green4 => (&[20, 7], inner4(64)),
            Self::Blue6 => (&[10], inner6("fd00:9::9", 64)),
            Self::End | Self::EndX | Self::EndB6 | Self::Imported => {
                (&[], self.outer(64, self.sid().expect("a SID"), 1))
            }
            Self::EndDt6 => (&[], last(self, protocol::IPV6, &inner6("fd00:2:6::9", 64))),
            Self::EndDx4 => (&[], last(self, protocol::IPV4, &inner4_to([10, 2, 0, 9], 64))),
        };
        let frame = framed(NODE_LEFT, WORLD_LEFT, tags, &packet);
        let flow_at = match self {
            // The low bits of the flow label.
            Self::End | Self::EndX | Self::EndB6 | Self::Imported => ETHERNET + 2,
            // The source port.
            _ => frame.len() - PROOF - 8 - 8,
        };
        Sample { frame, flow_at }
    }

    /// Returns a packet on its path through this SID, with `left` segments left.
    fn outer(self, hop_limit: u8, dst: &str, left: u8) -> Vec<u8> {
        let path = [addr(self.sid().expect("a SID")), addr(NEXT)];
        let srh = Srh { segments_left: left, ..Srh::of_path(protocol::IPV4, &path) };
        let payload = srh.around(&inner4(64)).unwrap();
        ipv6(WORLD, addr(dst), protocol::ROUTING, hop_limit, &payload)
    }

    /// Returns the valid results in a state, from the kernel or from the program: packets, the
    /// position of the flow's number, and true if the flow label of an outer header may have any
    /// value.
    fn results(self, state: &State, kernel: bool) -> Vec<(Vec<u8>, Flow)> {
        let list = |tenant: u16, n: u16| segment(state.lists, tenant, n);
        let deep = |length: usize| Flow::At(length - PROOF - 8 - 8, true);
        match self {
            Self::Blue4 if !state.prefix => Vec::new(),
            Self::End | Self::EndX if !state.sids => Vec::new(),
            Self::Imported if !state.kernel_sid => Vec::new(),
            Self::Blue4 => {
                let (inner, path) = (inner4(64), [list(1, 0), list(1, 1)]);
                let srh = Srh::of_path(protocol::IPV4, &path);
                let packet = encapsulated(&path, Some(srh), protocol::IPV4, &inner);
                let length = packet.len();
                vec![(packet, deep(length))]
            }
            Self::Green4 => {
                let (inner, path) = (inner4(64), [list(2, 0)]);
                let packet = encapsulated(&path, None, protocol::IPV4, &inner);
                let length = packet.len();
                vec![(packet, deep(length))]
            }
            Self::Blue6 => [0, 1]
                .map(|n| {
                    let inner = inner6("fd00:9::9", 64);
                    let packet = encapsulated(&[list(3, n)], None, protocol::IPV6, &inner);
                    let length = packet.len();
                    (packet, deep(length))
                })
                .into(),
            Self::End | Self::EndX | Self::Imported => {
                vec![(self.outer(63, NEXT, 0), Flow::At(2, false))]
            }
            Self::EndDt6 => {
                let packet = inner6("fd00:2:6::9", 63);
                let at = packet.len() - PROOF - 8 - 8;
                vec![(packet, Flow::At(at, false))]
            }
            Self::EndDx4 => {
                let packet = inner4_to([10, 2, 0, 9], 63);
                let at = packet.len() - PROOF - 8 - 8;
                vec![(packet, Flow::At(at, false))]
            }
            Self::EndB6 => {
                let inner = self.outer(64, NEXT, 0);
                let path = [list(4, 0), list(4, 1)];
                // Reduced (RFC 8986 section 5.2): the first segment is only in the destination
                // address. The kernel has no End.B6.Encaps.Red.
                let is_whole = kernel || state.plain;
                let mut srh = Srh::of_path(protocol::IPV6, &path[usize::from(!is_whole)..]);
                srh.segments_left = 1;
                let packet = encapsulated(&path, Some(srh), protocol::IPV6, &inner);
                let at = packet.len() - inner.len() + 2;
                vec![(packet, Flow::At(at, true))]
            }
        }
    }

    /// Returns true if the flows are spread over equal paths. The fields by which the kernel
    /// distinguishes flows (addresses, flow label, protocol) are equal in all packets from End.DT6
    /// and End.DX4.
    pub(crate) fn is_spread(self) -> bool {
        !matches!(self, Self::EndX | Self::EndDt6 | Self::EndDx4)
    }

    /// Returns the paths by which it leaves.
    fn ways(self, state: &State) -> Vec<Way> {
        match self {
            Self::EndX => vec![Way::Right],
            // Another family, and a table that the SID names.
            Self::EndDx4 | Self::EndDt6 => state.routes.clone(),
            _ if state.rule => vec![Way::Side],
            _ => state.routes.clone(),
        }
    }
}

/// The offset of the flow's number from the start of layer 3, and true if the node writes an outer
/// flow label.
#[derive(Clone, Copy)]
enum Flow {
    At(usize, bool),
}

/// Returns all frames that are valid in a state.
pub(crate) fn expected(state: &State) -> Vec<Expected> {
    let mut all = Vec::new();
    for (kind, what) in Kind::all(state).iter().enumerate() {
        for way in what.ways(state) {
            let Some(next) = state.mac(way) else { continue };
            for (interface, kernel) in way.judges().into_iter().zip([false, true]) {
                for (packet, Flow::At(at, label)) in what.results(state, kernel) {
                    all.push(Expected {
                        kind,
                        interface,
                        frame: framed(next, way.node_mac(), &[], &packet),
                        flow_at: ETHERNET + at,
                        free: label.then_some((ETHERNET + 1, ETHERNET + 4)),
                    });
                }
            }
        }
    }
    all
}

/// The segment after the SIDs of the stream's own frames.
const NEXT: &str = "fd00:2::1";

/// Returns a segment of the lists in a version.
pub(crate) fn segment(version: u16, list: u16, n: u16) -> Ipv6Addr {
    Ipv6Addr::from([0xfd00, 2, version, list, 0, 0, 0, 0x100 + n])
}

fn addr(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn framed(dst: Mac, src: Mac, tags: &[u16], packet: &[u8]) -> Vec<u8> {
    let kind = |at: usize| match tags.len() - at {
        0 => ethertype::of_ip(packet),
        1 => ethertype::VLAN,
        _ => ethertype::SERVICE_VLAN,
    };
    let mut frame = Vec::new();
    Ethernet { dst, src, ethertype: kind(0) }.emit(&mut frame);
    for (at, id) in tags.iter().enumerate() {
        frame.extend(id.to_be_bytes());
        frame.extend(kind(at + 1).to_be_bytes());
    }
    frame.extend(packet);
    frame
}

/// Returns a packet to a SID as its last segment.
fn last(kind: Kind, next_header: u8, inner: &[u8]) -> Vec<u8> {
    let sid = addr(kind.sid().expect("a SID"));
    let payload = Srh::of_path(next_header, &[sid]).around(inner).unwrap();
    ipv6(WORLD, sid, protocol::ROUTING, 64, &payload)
}

fn encapsulated(path: &[Ipv6Addr], srh: Option<Srh>, next_header: u8, inner: &[u8]) -> Vec<u8> {
    match srh {
        Some(srh) => ipv6(SOURCE, path[0], protocol::ROUTING, 63, &srh.around(inner).unwrap()),
        None => ipv6(SOURCE, path[0], next_header, 63, inner),
    }
}

fn ipv6(src: &str, dst: Ipv6Addr, next_header: u8, hop_limit: u8, payload: &[u8]) -> Vec<u8> {
    Ipv6 { hop_limit, ..Ipv6::new(addr(src), dst, next_header) }.around(payload).unwrap()
}

/// Returns a UDP datagram with room for the proof, after a word of the tenant.
fn udp() -> Vec<u8> {
    Udp::new(0, 2222).around(&[0x5a; 8 + PROOF]).unwrap()
}

fn inner4(ttl: u8) -> Vec<u8> {
    inner4_to([10, 9, 0, 9], ttl)
}

fn inner4_to(dst: [u8; 4], ttl: u8) -> Vec<u8> {
    let header = Ipv4::new([10, 1, 0, 2].into(), dst.into(), protocol::UDP);
    Ipv4 { identification: 7, ttl, ..header }.around(&udp()).unwrap()
}

fn inner6(dst: &str, hop_limit: u8) -> Vec<u8> {
    ipv6("fd00:99::2", addr(dst), protocol::UDP, hop_limit, &udp())
}
