//! Layout of a route message (linux/rtnetlink.h).

use netlink_packet_core::DecodeError;

use crate::attribute::{array, each, u32_at};

// linux/rtnetlink.h, linux/lwtunnel.h
pub(super) const RTN_UNICAST: u8 = 1;
pub(super) const RTN_BLACKHOLE: u8 = 6;
pub(super) const RTN_UNREACHABLE: u8 = 7;
pub(super) const RTA_DST: u16 = 1;
pub(super) const RTA_OIF: u16 = 4;
pub(super) const RTA_GATEWAY: u16 = 5;
pub(super) const RTA_PRIORITY: u16 = 6;
pub(super) const RTA_PREFSRC: u16 = 7;
pub(super) const RTA_METRICS: u16 = 8;
pub(super) const RTA_MULTIPATH: u16 = 9;
pub(super) const RTA_TABLE: u16 = 15;
pub(super) const RTA_VIA: u16 = 18;
pub(super) const RTA_ENCAP_TYPE: u16 = 21;
pub(super) const RTA_ENCAP: u16 = 22;
pub(super) const RTA_NH_ID: u16 = 30;
pub(super) const RTAX_LOCK: u16 = 1;
pub(super) const RTAX_MTU: u16 = 2;
/// struct rtmsg: family, lengths of destination and source, TOS, table, protocol, scope, type, and
/// 32 bits of flags.
pub(super) const HEADER: usize = 12;
/// struct rtnexthop: length (u16), flags, weight, interface (u32), then attributes.
pub(super) const HOP_HEADER: usize = 8;

/// Returns the next hops in RTA_MULTIPATH, each with its header.
pub(super) fn hops(mut rest: &[u8]) -> impl Iterator<Item = Result<&[u8], DecodeError>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let size = array(rest, 0).map(|size| usize::from(u16::from_ne_bytes(size)));
        let one = size.ok().and_then(|size| rest.get(..size)).filter(|one| one.len() >= HOP_HEADER);
        let end = one.map_or(rest.len(), |one| one.len().next_multiple_of(4));
        rest = rest.get(end..).unwrap_or_default();
        Some(one.ok_or_else(|| "a next hop is cut off".into()))
    })
}

/// Reads the metrics of a route: its MTU, and true if the kernel keeps to it (`mtu lock`).
pub(super) fn mtu(metrics: &[u8]) -> Result<(Option<u32>, bool), DecodeError> {
    let (mut mtu, mut is_locked) = (None, false);
    for metric in each(metrics) {
        let metric = metric?;
        match metric.kind() {
            RTAX_LOCK => is_locked = u32_at(metric.value(), 0)? & 1 << RTAX_MTU != 0,
            RTAX_MTU => mtu = Some(u32_at(metric.value(), 0)?),
            _ => {}
        }
    }
    Ok((mtu, is_locked))
}
