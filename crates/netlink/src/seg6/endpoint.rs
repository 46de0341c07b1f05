//! The kernel's actions for SIDs (seg6local) with their flavors: the counterparts of endpoint
//! behaviors.

use std::net::{Ipv4Addr, Ipv6Addr};

use srv6::{Behavior, CsidLengths, Flavors, LookUp, SegmentList};

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

/// An action of the kernel (RFC 8986 section 4).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LocalAction {
    /// End: forward to the next segment (section 4.1).
    End,
    /// End.X: forward to the next segment over one adjacency (section 4.2).
    EndX {
        /// The neighbor. Without `interface` the kernel resolves it by its routing table, so it
        /// must be a global address.
        nh6: Ipv6Addr,
        /// The interface of the neighbor, since Linux 6.17. Older kernels ignore it silently.
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
    /// End.DX4: decapsulate and forward the IPv4 packet to a neighbor (section 4.5).
    EndDx4 {
        /// The neighbor; 0.0.0.0 to look up the packet's own destination.
        nh4: Ipv4Addr,
    },
    /// End.DX6: decapsulate and forward the IPv6 packet to a neighbor (section 4.4).
    EndDx6 {
        /// The neighbor; `::` to look up the packet's own destination.
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
    /// appends the packet's destination, the SID itself, as the last segment: the list does not
    /// contain it.
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

impl LocalAction {
    /// Returns the counterpart of a behavior; none if only XDP has it, or if the kernel finds its
    /// table only by a VRF and there is none.
    pub fn of<L>(behavior: &Behavior<u32, LookUp, SegmentList, L>) -> Option<Self> {
        Some(match behavior {
            Behavior::End => Self::End,
            Behavior::EndX { next_hop } => Self::EndX { nh6: *next_hop, interface: None },
            Behavior::EndT { table } => Self::EndT { table: table.table },
            Behavior::EndDx2 { port } => Self::EndDx2 { interface: *port },
            Behavior::EndDx4 { next_hop } => Self::EndDx4 { nh4: *next_hop },
            Behavior::EndDx6 { next_hop } => Self::EndDx6 { nh6: *next_hop },
            Behavior::EndDt6 { table: LookUp { table, vrf: None } } => {
                Self::EndDt6 { table: *table }
            }
            Behavior::EndDt6 { table: LookUp { table, vrf: Some(_) } } => {
                Self::EndDt6Vrf { vrf_table: *table }
            }
            Behavior::EndDt4 { table: LookUp { table, vrf: Some(_) } } => {
                Self::EndDt4 { vrf_table: *table }
            }
            Behavior::EndDt46 { table: LookUp { table, vrf: Some(_) } } => {
                Self::EndDt46 { vrf_table: *table }
            }
            Behavior::EndB6Encaps { policy } => Self::EndB6Encaps { segments: policy.clone() },
            Behavior::EndB6Insert { policy } => Self::EndB6 { segments: policy.clone() },
            _ => return None,
        })
    }
}

/// The attributes nested in RTA_ENCAP. The kernel (6.18) supports the flavors PSP and NEXT-C-SID with
/// End, NEXT-C-SID with End.X, and rejects other flavors for these two. With all other actions it
/// ignores flavors silently: the route that is read back has none.
pub(super) fn write(behavior: &LocalAction, flavors: Flavors, counters: bool) -> Vec<u8> {
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
        LocalAction::End => action(&mut out, ACTION_END),
        LocalAction::EndX { nh6, interface } => {
            action(&mut out, ACTION_END_X);
            out.put(SEG6_LOCAL_NH6, &nh6.octets());
            if let Some(interface) = interface {
                number(&mut out, SEG6_LOCAL_OIF, *interface);
            }
        }
        LocalAction::EndT { table } => {
            action(&mut out, ACTION_END_T);
            number(&mut out, SEG6_LOCAL_TABLE, *table);
        }
        LocalAction::EndDx2 { interface } => {
            action(&mut out, ACTION_END_DX2);
            number(&mut out, SEG6_LOCAL_OIF, *interface);
        }
        LocalAction::EndDx4 { nh4 } => {
            action(&mut out, ACTION_END_DX4);
            out.put(SEG6_LOCAL_NH4, &nh4.octets());
        }
        LocalAction::EndDx6 { nh6 } => {
            action(&mut out, ACTION_END_DX6);
            out.put(SEG6_LOCAL_NH6, &nh6.octets());
        }
        LocalAction::EndDt4 { vrf_table } => {
            action(&mut out, ACTION_END_DT4);
            number(&mut out, SEG6_LOCAL_VRFTABLE, *vrf_table);
        }
        LocalAction::EndDt6 { table } => {
            action(&mut out, ACTION_END_DT6);
            number(&mut out, SEG6_LOCAL_TABLE, *table);
        }
        LocalAction::EndDt6Vrf { vrf_table } => {
            action(&mut out, ACTION_END_DT6);
            number(&mut out, SEG6_LOCAL_VRFTABLE, *vrf_table);
        }
        LocalAction::EndDt46 { vrf_table } => {
            action(&mut out, ACTION_END_DT46);
            number(&mut out, SEG6_LOCAL_VRFTABLE, *vrf_table);
        }
        LocalAction::EndB6 { segments } => {
            action(&mut out, ACTION_END_B6);
            list(&mut out, segments, true);
        }
        LocalAction::EndB6Encaps { segments } => {
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
    // The kernel has no REPLACE-C-SID.
    let Flavors { psp, usp, usd, next_csid, replace_csid: _ } = flavors;
    let bits = [(psp, PSP), (usp, USP), (usd, USD), (next_csid.is_some(), NEXT_CSID)];
    let operations: u32 = bits.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum();
    out.put(SEG6_LOCAL_FLV_OPERATION, &operations.to_ne_bytes());
    if let Some(CsidLengths { block_bits, node_function_bits }) = next_csid {
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
pub(super) fn read(attributes: &[u8]) -> Option<(LocalAction, Flavors, bool)> {
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
        ACTION_END => LocalAction::End,
        ACTION_END_X => LocalAction::EndX { nh6: found.nh6?, interface: found.oif },
        ACTION_END_T => LocalAction::EndT { table: found.table? },
        ACTION_END_DX2 => LocalAction::EndDx2 { interface: found.oif? },
        ACTION_END_DX4 => LocalAction::EndDx4 { nh4: found.nh4? },
        ACTION_END_DX6 => LocalAction::EndDx6 { nh6: found.nh6? },
        ACTION_END_DT4 => LocalAction::EndDt4 { vrf_table: found.vrf_table? },
        ACTION_END_DT6 => match (found.table, found.vrf_table) {
            (Some(table), None) => LocalAction::EndDt6 { table },
            (None, Some(vrf_table)) => LocalAction::EndDt6Vrf { vrf_table },
            _ => return None,
        },
        ACTION_END_DT46 => LocalAction::EndDt46 { vrf_table: found.vrf_table? },
        ACTION_END_B6 => LocalAction::EndB6 { segments: list(true)? },
        ACTION_END_B6_ENCAP => LocalAction::EndB6Encaps { segments: list(false)? },
        _ => return None,
    };
    Some((behavior, found.flavors, found.counters))
}

fn read_flavors(attributes: &[u8]) -> Option<Flavors> {
    let (mut operations, mut lengths) = (0, CsidLengths::default());
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
        replace_csid: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use srv6::Sid;

    fn behaviors() -> Vec<LocalAction> {
        let nh6: Ipv6Addr = "fd00:a::2".parse().unwrap();
        let segments = SegmentList(vec![Sid(nh6), Sid("fd00:b::2".parse().unwrap())]);
        vec![
            LocalAction::End,
            LocalAction::EndX { nh6, interface: None },
            LocalAction::EndX { nh6, interface: Some(7) },
            LocalAction::EndT { table: 254 },
            LocalAction::EndDx2 { interface: 7 },
            LocalAction::EndDx4 { nh4: [10, 0, 0, 2].into() },
            LocalAction::EndDx6 { nh6 },
            LocalAction::EndDt4 { vrf_table: 100_000 },
            LocalAction::EndDt6 { table: 254 },
            LocalAction::EndDt6Vrf { vrf_table: 100 },
            LocalAction::EndDt46 { vrf_table: 100 },
            LocalAction::EndB6 { segments: segments.clone() },
            LocalAction::EndB6Encaps { segments },
        ]
    }

    #[test]
    fn a_counterpart_needs_its_vrf() {
        type Resolved = Behavior<u32, LookUp, SegmentList, ()>;
        let of = |behavior: Resolved| LocalAction::of(&behavior);
        let table = |vrf| LookUp { table: 100, vrf };
        assert_eq!(
            of(Behavior::EndT { table: table(Some(5)) }),
            Some(LocalAction::EndT { table: 100 })
        );
        assert_eq!(of(Behavior::EndDt4 { table: table(None) }), None);
        assert_eq!(of(Behavior::EndDt46 { table: table(None) }), None);
        let with = of(Behavior::EndDt46 { table: table(Some(5)) });
        assert_eq!(with, Some(LocalAction::EndDt46 { vrf_table: 100 }));
        let [without, with] =
            [None, Some(5)].map(|vrf| of(Behavior::EndDt6 { table: table(vrf) }).unwrap());
        assert_eq!(without, LocalAction::EndDt6 { table: 100 });
        assert_eq!(with, LocalAction::EndDt6Vrf { vrf_table: 100 });
    }

    /// The table of behaviors and this crate agree about counterparts.
    #[test]
    fn the_kernels_behaviors_match_the_table() {
        let (table, port) = (LookUp { table: 100, vrf: Some(5) }, 7);
        let (next_hop4, next_hop6) = ([10, 0, 0, 2].into(), "fd00:a::2".parse().unwrap());
        let segments = || SegmentList(vec![Sid("fd00:b::2".parse().unwrap())]);
        let all: [Behavior<u32, LookUp, SegmentList, ()>; 11] = [
            Behavior::End,
            Behavior::EndX { next_hop: next_hop6 },
            Behavior::EndT { table },
            Behavior::EndDx2 { port },
            Behavior::EndDx4 { next_hop: next_hop4 },
            Behavior::EndDx6 { next_hop: next_hop6 },
            Behavior::EndDt4 { table },
            Behavior::EndDt6 { table },
            Behavior::EndDt46 { table },
            Behavior::EndB6Encaps { policy: segments() },
            Behavior::EndB6Insert { policy: segments() },
        ];
        let counterparts: Vec<_> = all.iter().map(|behavior| behavior.kind().name()).collect();
        assert!(all.iter().all(|behavior| LocalAction::of(behavior).is_some()));
        let table = srv6::TABLE.iter().filter(|info| info.kernel.is_some());
        assert_eq!(table.map(|info| info.name).collect::<Vec<_>>(), counterparts);
        let proxy = srv6::Proxy { to: (), back: (), via: None };
        for only_xdp in [
            Behavior::EndAnNf { answers: Some(segments()) },
            Behavior::EndAs { proxy: proxy.clone(), policy: segments() },
            Behavior::EndAd { proxy: proxy.clone() },
            Behavior::EndAm { proxy },
        ] {
            assert_eq!(LocalAction::of(&only_xdp), None, "{only_xdp:?}");
        }
    }

    #[test]
    fn every_behavior_with_every_flavor_is_read_back_equal() {
        for behavior in behaviors() {
            for bits in 0..32 {
                let on = |bit: u32| bits & bit != 0;
                let lengths = CsidLengths { block_bits: 48, node_function_bits: 24 };
                let flavors = Flavors {
                    psp: on(1),
                    usp: on(2),
                    usd: on(4),
                    next_csid: on(8).then_some(lengths),
                    replace_csid: None,
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
            assert_eq!(read(&whole[..8]).is_some(), behavior == LocalAction::End, "{behavior:?}");
            let mut program = Writer(whole.clone());
            program.put(8, &[0; 4]);
            assert_eq!(read(&program.0), None);
        }
        let mut other = Writer::default();
        other.put(SEG6_LOCAL_ACTION, &15u32.to_ne_bytes());
        assert_eq!(read(&other.0), None);
        let mut both = Writer(write(&LocalAction::EndDt6 { table: 7 }, Flavors::default(), false));
        both.put(SEG6_LOCAL_VRFTABLE, &7u32.to_ne_bytes());
        assert_eq!(read(&both.0), None);
        let mut later = Writer(write(&LocalAction::End, Flavors::default(), false));
        later.nest(SEG6_LOCAL_FLAVORS, |inner| {
            inner.put(SEG6_LOCAL_FLV_OPERATION, &(1u32 << 5).to_ne_bytes());
        });
        assert_eq!(read(&later.0), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn flavors_without_lengths_are_f3216() {
        let mut bytes = Writer(write(&LocalAction::End, Flavors::default(), false));
        bytes.nest(SEG6_LOCAL_FLAVORS, |inner| {
            inner.put(SEG6_LOCAL_FLV_OPERATION, &NEXT_CSID.to_ne_bytes());
        });
        let (_, flavors, _) = read(&bytes.0).unwrap();
        let next_csid = Some(CsidLengths { block_bits: 32, node_function_bits: 16 });
        assert_eq!(flavors, Flavors { next_csid, ..Flavors::default() });
    }
}
