//! First half of End.AN.NF: packets to a service function's SID go to netfilter or are dropped.

use std::collections::HashSet;

use bpf::measure::{run_once, verdict};
use bpf::srv6::types::{behavior, reason};
use bpf::srv6::{Sizes, types};
use bpf::{FunctionEnds, Srv6};
use wire::Ipv4;
use wire::protocol::{IPV4, IPV6, UDP};

use crate::bed::*;

const SID: &str = "fd00:1::f";
pub(crate) const PATH: [&str; 2] = [SID, "fd00:2::1"];

/// Slots in each CPU's ring.
pub(crate) const SLOTS: u32 = 16;

/// Loads the program with a function that uses `r` for its packets.
pub(crate) fn with_function(test: impl FnOnce(&Srv6) + Send + 'static) {
    in_node(|| {
        let mut plane = loaded(Sizes { slots: SLOTS, ..Sizes::default() });
        let sid = types::sid {
            address: address(SID),
            length: 128,
            behavior: behavior::BEHAVIOR_END_AN_NF.0 as u8,
            counter: 70,
            params: types::sid_params {
                netfilter: types::sid_netfilter { returned: 71, answers: 0 },
            },
            ..Default::default()
        };
        plane.sids.add(sid).unwrap();
        plane.attach_functions(FunctionEnds { inwards: index("l"), outwards: index("r") }).unwrap();
        test(&plane);
    });
}

fn run(plane: &Srv6, packet: &[u8]) -> bpf::measure::Run {
    run_once(plane.program(), index("l"), &frame(packet)).unwrap()
}

/// Returns the inner packet on its way into the kernel.
fn inwards(plane: &Srv6, inner: &[u8], kind: u8) -> Vec<u8> {
    let run = run(plane, &srv6("fd00:9::1", &PATH, 1, kind, inner));
    assert_eq!(run.verdict, verdict::REDIRECT);
    run.frame[14..].to_vec()
}

#[test]
fn root_nothing_goes_past_the_rules() {
    with_function(|plane| {
        let v4 = udp4("10.1.0.1", "10.2.0.1", 22);
        let good = |inner: &[u8], kind| srv6("fd00:9::1", &PATH, 1, kind, inner);
        let mut tlv = good(&v4, IPV4);
        // One unit of eight bytes more than the list has: its first address is parsed as a TLV.
        tlv[41] += 1;
        let mut other_length = v4.clone();
        other_length[3] += 1;
        let mut cases = vec![
            (srv6("fd00:9::1", &["fd00:2::1", SID], 0, IPV4, &v4), reason::REASON_LAST_SEGMENT),
            (udp6("fd00:9::1", SID, 22), reason::REASON_NO_SRH),
            (tlv, reason::REASON_TLV),
            (good(&v4, UDP), reason::REASON_WRONG_PAYLOAD),
            (good(&other_length, IPV4), reason::REASON_IRREGULAR),
        ];
        // Destinations that the kernel would handle as its own.
        for to in ["224.0.0.1", "255.255.255.255", "127.0.0.1", "0.0.0.0"] {
            cases.push((good(&udp4("10.1.0.1", to, 22), IPV4), reason::REASON_IRREGULAR));
        }
        for to in ["ff02::1", "ff02::2", "fe80::1", "::1"] {
            cases.push((good(&udp6("fd00:9::9", to, 22), IPV6), reason::REASON_IRREGULAR));
        }
        for (packet, why) in cases {
            let counter = reason::REASONS.0 + why.0;
            let before = plane.count(counter).packets;
            assert_eq!(run(plane, &packet).verdict, verdict::DROP, "{why:?}");
            assert_eq!(plane.count(counter).packets, before + 1, "{why:?}");
        }
        assert_eq!(plane.count(70).packets, 0);
        inwards(plane, &v4, IPV4);
        assert_eq!(plane.count_of_sid(1).packets, 1);
    });
}

/// Decrements the TTL as the kernel does (net/ip.h, ip_decrease_ttl()): RFC 1624.
pub(crate) fn decrease_ttl(packet: &mut [u8]) {
    let check = u32::from(u16::from_le_bytes([packet[10], packet[11]]));
    // 0x0100 in network byte order.
    let check = check + 1;
    let check = check + u32::from(check >= 0xffff);
    packet[10..12].copy_from_slice(&(check as u16).to_le_bytes());
    packet[8] -= 1;
}

#[test]
fn root_a_ttl_comes_back_as_it_was_with_every_checksum() {
    with_function(|plane| {
        let packet = |identification, ttl| {
            let header = Ipv4::new("10.1.0.1".parse().unwrap(), "10.2.0.1".parse().unwrap(), UDP);
            Ipv4 { identification, ttl, ..header }.around(&[0; 20]).unwrap()
        };
        let mut checksums = HashSet::new();
        for identification in 0..=u16::MAX {
            let packet = packet(identification, 64);
            checksums.insert([packet[10], packet[11]]);
            let mut passed = inwards(plane, &packet, IPV4);
            assert_eq!(passed[8], 65);
            decrease_ttl(&mut passed);
            assert_eq!(passed, packet);
        }
        // All values except 0xffff, which is equivalent to zero and never transmitted.
        assert_eq!(checksums.len(), 65535);
        assert_eq!(inwards(plane, &packet(1, 255), IPV4), packet(1, 255));
    });
}
