//! SRv6 in the kernel: what a headend pushes (RFC 8986 section 5), what an endpoint does
//! (section 4), and the outer source address.

use std::net::{Ipv4Addr, Ipv6Addr};

use model::{SegmentList, Sid};
use netlink_packet_route::route::{
    RouteLwEnCapType, RouteLwTunnelEncap, RouteSeg6IpTunnel, RouteSeg6LocalTunnel, Seg6Header,
    Seg6LocalAction, Seg6Mode,
};

use crate::attribute::Writer;
use crate::{GenericHandle, Result};

/// What a route does to a packet besides forwarding it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Encap {
    /// The headend's part: an outer IPv6 header and a segment routing header.
    Seg6 {
        /// Which of the two forms.
        mode: Mode,
        /// The segments, the first to visit first.
        segments: SegmentList,
    },
    /// The endpoint's part, on a route to the SID.
    Seg6Local(Behavior),
}

/// How a headend encapsulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// H.Encaps (RFC 8986 section 5.1).
    Encap,
    /// H.Encaps.Red: the first segment is in the destination address alone (section 5.2).
    EncapRed,
}

/// SEG6_IPTUN_MODE_ENCAP_RED (linux/seg6_iptunnel.h)
const MODE_ENCAP_RED: u32 = 3;

/// An endpoint behaviour (RFC 8986 section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Behavior {
    /// End: on to the next segment (section 4.1).
    End,
    /// End.X: on to the next segment, over one adjacency (section 4.2). The kernel resolves
    /// `nh6` by its routes, so it has to be a global address.
    EndX {
        /// The neighbour.
        nh6: Ipv6Addr,
    },
    /// End.DX4: decapsulate, forward the IPv4 packet to a neighbour (section 4.5).
    EndDx4 {
        /// The neighbour; 0.0.0.0 for a look-up of the packet's own destination.
        nh4: Ipv4Addr,
    },
    /// End.DX6: decapsulate, forward the IPv6 packet to a neighbour (section 4.4).
    EndDx6 {
        /// The neighbour; `::` for a look-up of the packet's own destination.
        nh6: Ipv6Addr,
    },
    /// End.DT6: decapsulate, look the IPv6 packet up (section 4.6).
    EndDt6 {
        /// The routing table to look it up in.
        table: u32,
    },
}

impl Encap {
    pub(crate) fn kind(&self) -> RouteLwEnCapType {
        match self {
            Self::Seg6 { .. } => RouteLwEnCapType::Seg6,
            Self::Seg6Local(_) => RouteLwEnCapType::Seg6Local,
        }
    }

    pub(crate) fn to_attributes(&self) -> Vec<RouteLwTunnelEncap> {
        match self {
            // No SRH can hold an empty list; the kernel refuses the empty attribute.
            Self::Seg6 { segments, .. } if segments.0.is_empty() => Vec::new(),
            Self::Seg6 { mode, segments } => {
                let mut header = Seg6Header::default();
                header.mode = match mode {
                    Mode::Encap => Seg6Mode::Encap,
                    Mode::EncapRed => Seg6Mode::Other(MODE_ENCAP_RED),
                };
                // The crate reverses the list for the wire (RFC 8754 section 2: Segment List[0]
                // is the last segment) and back.
                header.segments = segments.0.iter().map(|sid| sid.0).collect();
                vec![RouteLwTunnelEncap::Seg6(RouteSeg6IpTunnel::Seg6(header))]
            }
            Self::Seg6Local(behavior) => {
                use RouteSeg6LocalTunnel as Attribute;
                use Seg6LocalAction as Action;
                let (action, argument) = match *behavior {
                    Behavior::End => (Action::End, None),
                    Behavior::EndX { nh6 } => (Action::EndX, Some(Attribute::Nh6(nh6))),
                    Behavior::EndDx4 { nh4 } => (Action::EndDx4, Some(Attribute::Nh4(nh4))),
                    Behavior::EndDx6 { nh6 } => (Action::EndDx6, Some(Attribute::Nh6(nh6))),
                    Behavior::EndDt6 { table } => (Action::EndDt6, Some(Attribute::Table(table))),
                };
                let action = [Attribute::Action(action)];
                action.into_iter().chain(argument).map(RouteLwTunnelEncap::Seg6Local).collect()
            }
        }
    }

    /// None for what this crate never makes.
    pub(crate) fn from_attributes(attributes: &[RouteLwTunnelEncap]) -> Option<Self> {
        if let [RouteLwTunnelEncap::Seg6(RouteSeg6IpTunnel::Seg6(header))] = attributes {
            let mode = match header.mode {
                Seg6Mode::Encap => Mode::Encap,
                Seg6Mode::Other(MODE_ENCAP_RED) => Mode::EncapRed,
                _ => return None,
            };
            let segments = SegmentList(header.segments.iter().copied().map(Sid).collect());
            return Some(Self::Seg6 { mode, segments });
        }
        let (mut action, mut nh4, mut nh6, mut table) = (None, None, None, None);
        for attribute in attributes {
            match attribute {
                RouteLwTunnelEncap::Seg6Local(RouteSeg6LocalTunnel::Action(a)) => action = Some(*a),
                RouteLwTunnelEncap::Seg6Local(RouteSeg6LocalTunnel::Nh4(a)) => nh4 = Some(*a),
                RouteLwTunnelEncap::Seg6Local(RouteSeg6LocalTunnel::Nh6(a)) => nh6 = Some(*a),
                RouteLwTunnelEncap::Seg6Local(RouteSeg6LocalTunnel::Table(t)) => table = Some(*t),
                _ => return None,
            }
        }
        Some(Self::Seg6Local(match action? {
            Seg6LocalAction::End => Behavior::End,
            Seg6LocalAction::EndX => Behavior::EndX { nh6: nh6? },
            Seg6LocalAction::EndDx4 => Behavior::EndDx4 { nh4: nh4? },
            Seg6LocalAction::EndDx6 => Behavior::EndDx6 { nh6: nh6? },
            Seg6LocalAction::EndDt6 => Behavior::EndDt6 { table: table? },
            _ => return None,
        }))
    }
}

// linux/seg6_genl.h
const SEG6_CMD_SET_TUNSRC: u8 = 3;
const SEG6_CMD_GET_TUNSRC: u8 = 4;
const SEG6_ATTR_DST: u16 = 1;

impl GenericHandle {
    /// Sets the source address of every outer header that this namespace pushes. Without it the
    /// kernel picks one per packet, which costs a look-up and depends on the interface.
    pub fn set_tunnel_source(&mut self, source: Ipv6Addr) -> Result<()> {
        let mut body = Writer::default();
        body.put(SEG6_ATTR_DST, &source.octets());
        self.call("SEG6", SEG6_CMD_SET_TUNSRC, &body, &format!("set the tunnel source {source}"))
    }

    /// The source address of outer headers; `::` when the kernel picks one.
    pub fn tunnel_source(&mut self) -> Result<Ipv6Addr> {
        let body = Writer::default();
        self.query("SEG6", SEG6_CMD_GET_TUNSRC, &body, "read the tunnel source", |attributes| {
            for attribute in crate::attribute::each(attributes) {
                let attribute = attribute?;
                if attribute.kind() == SEG6_ATTR_DST {
                    return crate::attribute::array(attribute.value(), 0).map(Ipv6Addr::from);
                }
            }
            Err("no address in it".into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{in_namespace, output};

    #[test]
    fn root_the_tunnel_source_is_read_back() {
        in_namespace(|| {
            let mut handle = GenericHandle::new().unwrap();
            assert_eq!(handle.tunnel_source().unwrap(), Ipv6Addr::UNSPECIFIED);
            handle.set_tunnel_source("fd00::7".parse().unwrap()).unwrap();
            assert_eq!(handle.tunnel_source().unwrap().to_string(), "fd00::7");
            assert_eq!(output("ip", "sr tunsrc show").trim(), "tunsrc addr fd00::7");
        });
    }
}
