//! One packet for each behavior.

use bpf::Srv6;
use bpf::measure::{run_once, verdict};
use bpf::srv6::{Sizes, types};
use wire::{Headers, protocol};

use crate::bed::*;

/// Adds a SID. Returns its record.
fn add_sid(plane: &mut Srv6, text: &str, behavior: types::behavior, table: u32) -> u32 {
    let value = types::sid {
        address: address(text),
        length: 128,
        behavior: behavior.0 as u8,
        params: types::sid_params { table: types::sid_table { number: table, vrf: 0 } },
        counter: 70 + behavior.0,
        flags: types::sid_flag::SID_IN_KERNEL.0 as u8,
        ..Default::default()
    };
    plane.sids.add(value).unwrap()
}

/// Runs the program on a frame from the left. Returns its headers if it is forwarded.
fn forwarded(plane: &Srv6, packet: &[u8]) -> Option<Headers> {
    let run = run_once(plane.program(), index("l"), &frame(packet)).unwrap();
    if run.verdict != verdict::REDIRECT {
        assert_eq!(run.verdict, verdict::PASS);
        assert_eq!(run.frame, frame(packet), "what is left to the kernel is unchanged");
        return None;
    }
    Some(Headers::dissect(&run.frame).unwrap())
}

#[test]
fn root_end_goes_on_to_the_next_segment() {
    in_node(|| {
        let mut plane = loaded(Sizes::default());
        let sid = add_sid(&mut plane, "fd00:1::1", types::behavior::BEHAVIOR_END, 0);
        let inner = udp4("10.1.0.1", "10.2.0.1", 22);
        let path = ["fd00:1::1", "fd00:2::1"];
        let seen = forwarded(&plane, &srv6("fd00:9::1", &path, 1, protocol::IPV4, &inner)).unwrap();
        let outer = seen.outer().unwrap();
        assert_eq!(outer.dst, "fd00:2::1".parse::<std::net::IpAddr>().unwrap());
        assert_eq!((outer.hop_limit, outer.srh.as_ref().unwrap().segments_left), (63, 0));
        assert_eq!(seen.layers[1].hop_limit, 64);
        // End does not handle the last segment. A packet to an unknown SID is left to the kernel.
        let last = srv6("fd00:9::1", &["fd00:1::1"], 0, protocol::IPV4, &inner);
        assert_eq!(forwarded(&plane, &last), None);
        let other = srv6("fd00:9::1", &["fd00:1::2", "fd00:2::1"], 1, protocol::IPV4, &inner);
        assert_eq!(forwarded(&plane, &other), None);
        assert_eq!(plane.count_of_sid(sid).packets, 1);
    });
}

#[test]
fn root_decapsulation_and_its_inner_packet() {
    in_node(|| {
        let mut plane = loaded(Sizes::default());
        add_sid(&mut plane, "fd00:1::d4", types::behavior::BEHAVIOR_END_DX4, 0);
        add_sid(&mut plane, "fd00:1::d6", types::behavior::BEHAVIOR_END_DT6, 254);
        let inner = udp4("10.1.0.1", "10.2.0.1", 22);
        let packet = srv6("fd00:9::1", &["fd00:1::d4"], 0, protocol::IPV4, &inner);
        let seen = forwarded(&plane, &packet).unwrap();
        assert_eq!((seen.layers.len(), seen.layers[0].hop_limit), (1, 63));
        let inner = udp6("fd00:1::9", "fd00:2::9", 22);
        let packet = srv6("fd00:9::1", &["fd00:1::d6"], 0, protocol::IPV6, &inner);
        let seen = forwarded(&plane, &packet).unwrap();
        assert_eq!((seen.layers.len(), seen.layers[0].hop_limit), (1, 63));
    });
}

#[test]
fn root_a_tenants_packets_get_their_header() {
    in_node(|| {
        let mut plane = loaded(Sizes::default());
        let policy = policy_to_one(&mut plane);
        let mut tenant = types::tenant::default();
        tenant.ipv4[0].count = 2;
        tenant.ipv4[0].length[..2].copy_from_slice(&[24, 16]);
        plane.tenants.write(1, tenant);
        let address = u32::from_ne_bytes([10, 3, 0, 0]);
        plane.prefixes4.add(types::prefix4 { tenant: 1, length: 16, address, policy }).unwrap();

        let seen = forwarded(&plane, &udp4("10.1.0.1", "10.3.7.1", 22)).unwrap();
        let outer = seen.outer().unwrap();
        assert_eq!(outer.dst, "fd00:2::1".parse::<std::net::IpAddr>().unwrap());
        assert_eq!((outer.hop_limit, &outer.srh), (63, &None));
        assert_eq!(seen.layers[1].hop_limit, 64);
        assert_eq!(forwarded(&plane, &udp4("10.1.0.1", "10.4.0.1", 22)), None);

        // VLAN 0 counts as untagged.
        for tags in [&[0x81, 0, 0, 0][..], &[0x88, 0xa8, 0xe0, 0][..]] {
            let mut tagged = frame(&udp4("10.1.0.1", "10.3.7.1", 22));
            tagged.splice(12..12, tags.iter().copied());
            let run = run_once(plane.program(), index("l"), &tagged).unwrap();
            assert_eq!(run.verdict, verdict::REDIRECT);
            assert_eq!(Headers::dissect(&run.frame).unwrap().layers.len(), 2);
            tagged.splice(12..12, [0x88, 0xa8, 0, 0]);
            let run = run_once(plane.program(), index("l"), &tagged).unwrap();
            assert_ne!(run.verdict, verdict::PASS, "nor two");
        }

        // The kernel lacks the policy and would forward the packet unencapsulated.
        let mut odd = udp4("10.1.0.1", "10.3.7.1", 22);
        odd[0] = 0x46;
        let verdict_of =
            |plane: &Srv6| run_once(plane.program(), index("l"), &frame(&odd)).unwrap().verdict;
        assert_eq!(verdict_of(&plane), verdict::DROP);
        let value = types::policy { in_kernel: 1, ..plane.policies.get(policy) };
        plane.change_policy(policy, value);
        assert_eq!(verdict_of(&plane), verdict::PASS);
    });
}
/// A tenant cannot reach another tenant's table by a packet addressed to a SID.
#[test]
fn root_a_closed_port_reaches_no_sid() {
    in_node(|| {
        let mut plane = loaded(Sizes::default());
        let end = add_sid(&mut plane, "fd00:1::1", types::behavior::BEHAVIOR_END, 0);
        let dx4 = add_sid(&mut plane, "fd00:1::d4", types::behavior::BEHAVIOR_END_DX4, 0);
        let inner = udp4("10.1.0.1", "10.2.0.1", 22);
        let on_path = srv6("fd00:9::1", &["fd00:1::1", "fd00:2::1"], 1, protocol::IPV4, &inner);
        let last = srv6("fd00:9::1", &["fd00:1::d4"], 0, protocol::IPV4, &inner);
        for (closed, reached) in [(0, true), (1, false)] {
            let slot = index("l") % 16384;
            let mut port = plane.ports.get(&slot).unwrap().unwrap();
            port.flags = closed; // PORT_CLOSED
            plane.ports.set(&slot, &port).unwrap();
            for packet in [&on_path, &last] {
                assert_eq!(forwarded(&plane, packet).is_some(), reached);
            }
        }
        assert_eq!([end, dx4].map(|sid| plane.count_of_sid(sid).packets), [1, 1]);
    });
}
