//! Endpoint behaviors (RFC 8986 section 4) with their flavors (section 4.16, RFC 9800).

use std::net::{Ipv4Addr, Ipv6Addr};

use model::SegmentList;

use super::headend;
use crate::attribute::{Writer, array, each, u32_at};

// linux/seg6_local.h
const SEG6_LOCAL_ACTION: u16 = 1;
const SEG6_LOCAL_SRH: u16 = 2;
const SEG6_LOCAL_TABLE: u16 = 3;
const SEG6_LOCAL_NH4: u16 = 4;
const SEG6_LOCAL_NH6: u16 = 5;
const SEG6_LOCAL_OIF: u16 = 7;
const SEG6_LOCAL_VRFTABLE: u16 = 9;
const SEG6_LOCAL_COUNTERS: u16 = 10;
const SEG6_LOCAL_FLAVORS: u16 = 11;

const ACTION_END: u32 = 1;
const ACTION_END_X: u32 = 2;
const ACTION_END_T: u32 = 3;
const ACTION_END_DX2: u32 = 4;
const ACTION_END_DX6: u32 = 5;
const ACTION_END_DX4: u32 = 6;
const ACTION_END_DT6: u32 = 7;
const ACTION_END_DT4: u32 = 8;
const ACTION_END_B6: u32 = 9;
const ACTION_END_B6_ENCAP: u32 = 10;
const ACTION_END_DT46: u32 = 16;

const SEG6_LOCAL_CNT_PACKETS: u16 = 2;
const SEG6_LOCAL_CNT_BYTES: u16 = 3;
const SEG6_LOCAL_CNT_ERRORS: u16 = 4;

const SEG6_LOCAL_FLV_OPERATION: u16 = 1;
const SEG6_LOCAL_FLV_LCBLOCK_BITS: u16 = 2;
const SEG6_LOCAL_FLV_LCNODE_FN_BITS: u16 = 3;
/// SEG6_LOCAL_FLV_OP_PSP and so on are bit numbers.
const PSP: u32 = 1 << 1;
const USP: u32 = 1 << 2;
const USD: u32 = 1 << 3;
const NEXT_CSID: u32 = 1 << 4;

/// An endpoint behavior (RFC 8986 section 4).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Behavior {
    /// End: forward to the next segment (section 4.1).
    End,
    /// End.X: forward to the next segment over one adjacency (section 4.2).
    EndX {
        /// The neighbour. Without `interface` the kernel resolves it by its routing table, so it
        /// must be a global address.
        nh6: Ipv6Addr,
        /// The interface of the neighbour, since Linux 6.17. Older kernels ignore it silently.
        interface: Option<u32>,
    },
    /// End.T: look up the next segment in a specific table (section 4.3).
    EndT {
        /// The routing table.
        table: u32,
    },
    /// End.DX2: decapsulate and send the Ethernet frame unchanged (section 4.9).
    EndDx2 {
        /// The egress interface.
        interface: u32,
    },
    /// End.DX4: decapsulate and forward the IPv4 packet to a neighbour (section 4.5).
    EndDx4 {
        /// The neighbour; 0.0.0.0 to look up the packet's own destination.
        nh4: Ipv4Addr,
    },
    /// End.DX6: decapsulate and forward the IPv6 packet to a neighbour (section 4.4).
    EndDx6 {
        /// The neighbour; `::` to look up the packet's own destination.
        nh6: Ipv6Addr,
    },
    /// End.DT4: decapsulate and look up the IPv4 packet (section 4.7).
    EndDt4 {
        /// The table of a VRF device. `net.vrf.strict_mode` guarantees that it has only one device.
        vrf_table: u32,
    },
    /// End.DT6: decapsulate and look up the IPv6 packet (section 4.6).
    EndDt6 {
        /// The routing table to look up.
        table: u32,
    },
    /// End.DT6 with a VRF: the packet enters through the VRF device.
    EndDt6Vrf {
        /// The VRF device's table.
        vrf_table: u32,
    },
    /// End.DT46: decapsulate and look up the IPv4 or IPv6 packet (section 4.8).
    EndDt46 {
        /// The VRF device's table.
        vrf_table: u32,
    },
    /// End.B6.Insert, from the drafts: inserts another SRH before the packet's own. The kernel
    /// appends the packet's next SID as the last segment, so the list does not contain it.
    EndB6 {
        /// The segment list, in the order of visits.
        segments: SegmentList,
    },
    /// End.B6.Encaps: forward to the next segment inside an outer header (section 4.13).
    EndB6Encaps {
        /// The segment list, in the order of visits.
        segments: SegmentList,
    },
}

/// The flavors of an endpoint behavior. The kernel (6.18) supports PSP and NEXT-C-SID with End,
/// NEXT-C-SID with End.X, and rejects other flavors for these two. With all other behaviors it
/// ignores flavors silently: the route that is read back has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flavors {
    /// Penultimate segment pop (RFC 8986 section 4.16.1).
    pub psp: bool,
    /// Ultimate segment pop (section 4.16.2).
    pub usp: bool,
    /// Ultimate segment decapsulation (section 4.16.3).
    pub usd: bool,
    /// NEXT-C-SID: several compressed SIDs in one address (RFC 9800 section 4.1).
    pub next_csid: Option<NextCsid>,
}

/// Field lengths of a NEXT-C-SID container. The kernel accepts multiples of 8 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NextCsid {
    /// The locator block (LBL), in bits.
    pub block_bits: u8,
    /// Locator node and function (LNFL), in bits.
    pub node_function_bits: u8,
}

impl Default for NextCsid {
    /// The kernel's default, F3216: 32 and 16 bits.
    fn default() -> Self {
        Self { block_bits: 32, node_function_bits: 16 }
    }
}

/// The attributes nested in RTA_ENCAP.
pub(super) fn write(behavior: &Behavior, flavors: Flavors, counters: bool) -> Vec<u8> {
    let mut out = Writer::default();
    let number = |out: &mut Writer, kind, value: u32| {
        out.put(kind, &value.to_ne_bytes());
    };
    let action = |out: &mut Writer, value| number(out, SEG6_LOCAL_ACTION, value);
    let list = |out: &mut Writer, segments, inline| {
        if let Some(srh) = headend::srh(segments, inline) {
            out.put(SEG6_LOCAL_SRH, &srh);
        }
    };
    match behavior {
        Behavior::End => action(&mut out, ACTION_END),
        Behavior::EndX { nh6, interface } => {
            action(&mut out, ACTION_END_X);
            out.put(SEG6_LOCAL_NH6, &nh6.octets());
            if let Some(interface) = interface {
                number(&mut out, SEG6_LOCAL_OIF, *interface);
            }
        }
        Behavior::EndT { table } => {
            action(&mut out, ACTION_END_T);
            number(&mut out, SEG6_LOCAL_TABLE, *table);
        }
        Behavior::EndDx2 { interface } => {
            action(&mut out, ACTION_END_DX2);
            number(&mut out, SEG6_LOCAL_OIF, *interface);
        }
        Behavior::EndDx4 { nh4 } => {
            action(&mut out, ACTION_END_DX4);
            out.put(SEG6_LOCAL_NH4, &nh4.octets());
        }
        Behavior::EndDx6 { nh6 } => {
            action(&mut out, ACTION_END_DX6);
            out.put(SEG6_LOCAL_NH6, &nh6.octets());
        }
        Behavior::EndDt4 { vrf_table } => {
            action(&mut out, ACTION_END_DT4);
            number(&mut out, SEG6_LOCAL_VRFTABLE, *vrf_table);
        }
        Behavior::EndDt6 { table } => {
            action(&mut out, ACTION_END_DT6);
            number(&mut out, SEG6_LOCAL_TABLE, *table);
        }
        Behavior::EndDt6Vrf { vrf_table } => {
            action(&mut out, ACTION_END_DT6);
            number(&mut out, SEG6_LOCAL_VRFTABLE, *vrf_table);
        }
        Behavior::EndDt46 { vrf_table } => {
            action(&mut out, ACTION_END_DT46);
            number(&mut out, SEG6_LOCAL_VRFTABLE, *vrf_table);
        }
        Behavior::EndB6 { segments } => {
            action(&mut out, ACTION_END_B6);
            list(&mut out, segments, true);
        }
        Behavior::EndB6Encaps { segments } => {
            action(&mut out, ACTION_END_B6_ENCAP);
            list(&mut out, segments, false);
        }
    }
    if flavors != Flavors::default() {
        out.nest(SEG6_LOCAL_FLAVORS, |inner| write_flavors(inner, flavors));
    }
    if counters {
        // The kernel requires all three; it ignores the values.
        out.nest(SEG6_LOCAL_COUNTERS, |inner| {
            for counter in [SEG6_LOCAL_CNT_PACKETS, SEG6_LOCAL_CNT_BYTES, SEG6_LOCAL_CNT_ERRORS] {
                inner.put(counter, &0u64.to_ne_bytes());
            }
        });
    }
    out.0
}

fn write_flavors(out: &mut Writer, flavors: Flavors) {
    let Flavors { psp, usp, usd, next_csid } = flavors;
    let bits = [(psp, PSP), (usp, USP), (usd, USD), (next_csid.is_some(), NEXT_CSID)];
    let operations: u32 = bits.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum();
    out.put(SEG6_LOCAL_FLV_OPERATION, &operations.to_ne_bytes());
    if let Some(NextCsid { block_bits, node_function_bits }) = next_csid {
        out.put(SEG6_LOCAL_FLV_LCBLOCK_BITS, &[block_bits]);
        out.put(SEG6_LOCAL_FLV_LCNODE_FN_BITS, &[node_function_bits]);
    }
}

/// The parsed attributes.
#[derive(Default)]
struct Found {
    action: u32,
    srh: Option<Vec<u8>>,
    table: Option<u32>,
    nh4: Option<Ipv4Addr>,
    nh6: Option<Ipv6Addr>,
    oif: Option<u32>,
    vrf_table: Option<u32>,
    flavors: Flavors,
    counters: bool,
}

/// Parses the attributes. None for those that [`write()`] never produces.
pub(super) fn read(attributes: &[u8]) -> Option<(Behavior, Flavors, bool)> {
    let mut found = Found::default();
    for attribute in each(attributes) {
        let attribute = attribute.ok()?;
        let value = attribute.value();
        let number = || u32_at(value, 0).ok();
        match attribute.kind() {
            SEG6_LOCAL_ACTION => found.action = number()?,
            SEG6_LOCAL_SRH => found.srh = Some(value.to_vec()),
            SEG6_LOCAL_TABLE => found.table = Some(number()?),
            SEG6_LOCAL_NH4 => found.nh4 = Some(array::<4>(value, 0).ok()?.into()),
            SEG6_LOCAL_NH6 => found.nh6 = Some(array::<16>(value, 0).ok()?.into()),
            SEG6_LOCAL_OIF => found.oif = Some(number()?),
            SEG6_LOCAL_VRFTABLE => found.vrf_table = Some(number()?),
            SEG6_LOCAL_COUNTERS => found.counters = true,
            SEG6_LOCAL_FLAVORS => found.flavors = read_flavors(value)?,
            // A BPF program, for example.
            _ => return None,
        }
    }
    let list = |inline| headend::segments(found.srh.as_deref()?, inline);
    let behavior = match found.action {
        ACTION_END => Behavior::End,
        ACTION_END_X => Behavior::EndX { nh6: found.nh6?, interface: found.oif },
        ACTION_END_T => Behavior::EndT { table: found.table? },
        ACTION_END_DX2 => Behavior::EndDx2 { interface: found.oif? },
        ACTION_END_DX4 => Behavior::EndDx4 { nh4: found.nh4? },
        ACTION_END_DX6 => Behavior::EndDx6 { nh6: found.nh6? },
        ACTION_END_DT4 => Behavior::EndDt4 { vrf_table: found.vrf_table? },
        ACTION_END_DT6 => match (found.table, found.vrf_table) {
            (Some(table), None) => Behavior::EndDt6 { table },
            (None, Some(vrf_table)) => Behavior::EndDt6Vrf { vrf_table },
            _ => return None,
        },
        ACTION_END_DT46 => Behavior::EndDt46 { vrf_table: found.vrf_table? },
        ACTION_END_B6 => Behavior::EndB6 { segments: list(true)? },
        ACTION_END_B6_ENCAP => Behavior::EndB6Encaps { segments: list(false)? },
        _ => return None,
    };
    Some((behavior, found.flavors, found.counters))
}

fn read_flavors(attributes: &[u8]) -> Option<Flavors> {
    let (mut operations, mut lengths) = (0, NextCsid::default());
    for attribute in each(attributes) {
        let attribute = attribute.ok()?;
        match (attribute.kind(), attribute.value()) {
            (SEG6_LOCAL_FLV_OPERATION, value) => operations = u32_at(value, 0).ok()?,
            (SEG6_LOCAL_FLV_LCBLOCK_BITS, [bits]) => lengths.block_bits = *bits,
            (SEG6_LOCAL_FLV_LCNODE_FN_BITS, [bits]) => lengths.node_function_bits = *bits,
            _ => return None,
        }
    }
    let has = |bit| operations & bit != 0;
    (operations & !(PSP | USP | USD | NEXT_CSID) == 0).then(|| Flavors {
        psp: has(PSP),
        usp: has(USP),
        usd: has(USD),
        next_csid: has(NEXT_CSID).then_some(lengths),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Sid;

    fn behaviors() -> Vec<Behavior> {
        let nh6: Ipv6Addr = "fd00:a::2".parse().unwrap();
        let segments = SegmentList(vec![Sid(nh6), Sid("fd00:b::2".parse().unwrap())]);
        vec![
            Behavior::End,
            Behavior::EndX { nh6, interface: None },
            Behavior::EndX { nh6, interface: Some(7) },
            Behavior::EndT { table: 254 },
            Behavior::EndDx2 { interface: 7 },
            Behavior::EndDx4 { nh4: [10, 0, 0, 2].into() },
            Behavior::EndDx6 { nh6 },
            Behavior::EndDt4 { vrf_table: 100_000 },
            Behavior::EndDt6 { table: 254 },
            Behavior::EndDt6Vrf { vrf_table: 100 },
            Behavior::EndDt46 { vrf_table: 100 },
            Behavior::EndB6 { segments: segments.clone() },
            Behavior::EndB6Encaps { segments },
        ]
    }

    #[test]
    fn every_behavior_with_every_flavor_is_read_back_equal() {
        for behavior in behaviors() {
            for bits in 0..32 {
                let on = |bit: u32| bits & bit != 0;
                let lengths = NextCsid { block_bits: 48, node_function_bits: 24 };
                let flavors = Flavors {
                    psp: on(1),
                    usp: on(2),
                    usd: on(4),
                    next_csid: on(8).then_some(lengths),
                };
                let bytes = write(&behavior, flavors, on(16));
                assert_eq!(read(&bytes), Some((behavior.clone(), flavors, on(16))));
            }
        }
    }

    #[test]
    fn an_attribute_too_few_or_unknown_is_not_read() {
        for behavior in behaviors() {
            let whole = write(&behavior, Flavors::default(), false);
            // Only End is complete with the action alone.
            assert_eq!(read(&whole[..8]).is_some(), behavior == Behavior::End, "{behavior:?}");
            let mut program = Writer(whole.clone());
            program.put(8, &[0; 4]);
            assert_eq!(read(&program.0), None);
        }
        let mut other = Writer::default();
        other.put(SEG6_LOCAL_ACTION, &15u32.to_ne_bytes());
        assert_eq!(read(&other.0), None);
        let mut both = Writer(write(&Behavior::EndDt6 { table: 7 }, Flavors::default(), false));
        both.put(SEG6_LOCAL_VRFTABLE, &7u32.to_ne_bytes());
        assert_eq!(read(&both.0), None);
        let mut later = Writer(write(&Behavior::End, Flavors::default(), false));
        later.nest(SEG6_LOCAL_FLAVORS, |inner| {
            inner.put(SEG6_LOCAL_FLV_OPERATION, &(1u32 << 5).to_ne_bytes());
        });
        assert_eq!(read(&later.0), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn flavors_without_lengths_are_f3216() {
        let mut bytes = Writer(write(&Behavior::End, Flavors::default(), false));
        bytes.nest(SEG6_LOCAL_FLAVORS, |inner| {
            inner.put(SEG6_LOCAL_FLV_OPERATION, &NEXT_CSID.to_ne_bytes());
        });
        let (_, flavors, _) = read(&bytes.0).unwrap();
        let next_csid = Some(NextCsid { block_bits: 32, node_function_bits: 16 });
        assert_eq!(flavors, Flavors { next_csid, ..Flavors::default() });
    }
}
