//! Properties of routes that [`Route`](super::Route) may be unable to express.

use std::net::Ipv6Addr;

use ipnet::Ipv6Net;
use netlink_packet_core::{DecodeError, NlaBuffer};

use super::layout::{
    HEADER, HOP_HEADER, RTA_DST, RTA_ENCAP_TYPE, RTA_METRICS, RTA_MULTIPATH, RTA_NH_ID, RTA_OIF,
    RTA_TABLE, hops, mtu,
};
use crate::attribute::{after, array, each, u32_at};
use crate::seg6::LWTUNNEL_ENCAP_SEG6_LOCAL;

/// A route with an endpoint behavior of any kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SidRoute {
    /// The SID, or the prefix of its SIDs.
    pub destination: Ipv6Net,
    /// The table.
    pub table: u32,
    /// The protocol that installed it.
    pub protocol: u8,
}

/// The outline of a route.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// True if the route can send packets to one destination over different paths.
    pub(super) by_more: bool,
    /// True if the route has a locked MTU.
    pub(super) locks_mtu: bool,
    /// The SID, if the route has an endpoint behavior.
    pub(super) sid: Option<SidRoute>,
}

impl Outline {
    pub(super) fn parse(body: &[u8]) -> Result<Self, DecodeError> {
        let [family, length, source_length, tos, table, protocol] = array(body, 0)?;
        let (mut several, mut group, mut interface, mut is_sid) = (false, false, false, false);
        let mut locks_mtu = false;
        let (mut destination, mut table) = (Ipv6Addr::UNSPECIFIED, u32::from(table));
        for attribute in each(after(body, HEADER)?) {
            let attribute = attribute?;
            let value = attribute.value();
            match attribute.kind() {
                RTA_DST if i32::from(family) == libc::AF_INET6 => {
                    destination = array::<16>(value, 0)?.into();
                }
                RTA_TABLE => table = u32_at(value, 0)?,
                RTA_MULTIPATH => {
                    several = true;
                    for hop in hops(value) {
                        for attribute in each(&hop?[HOP_HEADER..]) {
                            is_sid |= is_seg6local(&attribute?)?;
                        }
                    }
                }
                RTA_METRICS => (_, locks_mtu) = mtu(value)?,
                RTA_NH_ID => group = true,
                RTA_OIF => interface = true,
                _ => is_sid |= is_seg6local(&attribute)?,
            }
        }
        // For a nexthop group, the kernel may report only its ID.
        let by_more = source_length != 0 || tos != 0 || several || group && !interface;
        let sid = if is_sid {
            let destination = Ipv6Net::new(destination, length)
                .map_err(|_| DecodeError::from("a prefix is longer than its address"))?;
            Some(SidRoute { destination, table, protocol })
        } else {
            None
        };
        Ok(Self { by_more, locks_mtu, sid })
    }
}

/// Returns true for the type of an encapsulation that is an endpoint behavior.
fn is_seg6local(attribute: &NlaBuffer<&[u8]>) -> Result<bool, DecodeError> {
    Ok(attribute.kind() == RTA_ENCAP_TYPE
        && u16::from_ne_bytes(array(attribute.value(), 0)?) == LWTUNNEL_ENCAP_SEG6_LOCAL)
}
