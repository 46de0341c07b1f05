//! The sender is notified if a packet is too big once it has an outer header.

use bpf::Srv6;
use bpf::measure::{Run, run_once, verdict};
use bpf::srv6::types::reason;
use bpf::srv6::{Sizes, types};

use crate::bed::*;

/// The MTU of the node's ports is 2000 bytes, of which the outer header takes 40.
const FITS: usize = 1960;
const QUOTE: usize = 512;

/// Steers all IPv4 and IPv6 packets to one SID, without an SRH.
fn plane() -> Srv6 {
    let mut plane = loaded(Sizes::default());
    let policy = policy_to_one(&mut plane);
    let mut tenant = types::tenant::default();
    tenant.ipv4[0].count = 1;
    tenant.ipv6[0].count = 1;
    plane.tenants.write(1, tenant);
    plane.prefixes4.add(types::prefix4 { tenant: 1, policy, ..Default::default() }).unwrap();
    plane.prefixes6.add(types::prefix6 { tenant: 1, policy, ..Default::default() }).unwrap();
    plane
}

fn run(plane: &Srv6, packet: &[u8]) -> Run {
    run_once(plane.program(), index("l"), &frame(packet)).unwrap()
}

/// The one's complement sum of RFC 1071, in a simple second implementation: 0xffff for a correct
/// checksum.
fn sum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | two.get(1).map_or(0, |b| u32::from(*b)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn root_the_sender_of_a_too_big_packet_gets_an_icmp_error() {
    in_node(|| {
        let plane = plane();
        for (over, told) in [(0, false), (1, true)] {
            let packet = udp4("10.1.0.1", "10.3.7.1", FITS - 28 + over);
            let answer = run(&plane, &packet);
            assert_eq!(answer.verdict, verdict::REDIRECT);
            if !told {
                assert_eq!(answer.frame.len(), 14 + 40 + packet.len());
                continue;
            }
            let (link, ip) = answer.frame.split_at(14);
            assert_eq!((&link[..6], &link[6..12]), (&LEFT_MAC[..], &NODE_LEFT[..]));
            assert_eq!(link[12..], [8, 0]);
            assert_eq!(ip.len(), 20 + 8 + QUOTE);
            assert_eq!(sum(&ip[..20]), 0xffff, "the header's checksum");
            assert_eq!(sum(&ip[20..]), 0xffff, "the message's checksum");
            assert_eq!(ip[12..16], [192, 0, 0, 8]);
            assert_eq!(ip[16..20], [10, 1, 0, 1]);
            // Fragmentation needed, with the MTU.
            assert_eq!(ip[20..22], [3, 4]);
            assert_eq!(ip[24..28], (FITS as u32).to_be_bytes());
            assert_eq!(ip[28..], packet[..QUOTE]);
        }
        let packet = udp6("fd00:9::9", "fd00:3::9", FITS - 48 + 1);
        let answer = run(&plane, &packet);
        assert_eq!(answer.verdict, verdict::REDIRECT);
        let ip = &answer.frame[14..];
        assert_eq!(ip.len(), 40 + 8 + QUOTE);
        assert_eq!(ip[..8], [0x60, 0, 0, 0, 2, 8, 58, 64]);
        assert_eq!(ip[8..24], "fd00:1::".parse::<std::net::Ipv6Addr>().unwrap().octets());
        assert_eq!(ip[24..40], "fd00:9::9".parse::<std::net::Ipv6Addr>().unwrap().octets());
        let pseudo = [&ip[8..40], &[0, 0, 2, 8, 0, 0, 0, 58], &ip[40..]].concat();
        assert_eq!(sum(&pseudo), 0xffff, "the message's checksum");
        assert_eq!(ip[40..42], [2, 0]);
        assert_eq!(ip[44..48], (FITS as u32).to_be_bytes());
        assert_eq!(ip[48..], packet[..QUOTE]);
        let told = types::reason::REASONS.0 + reason::REASON_TOO_BIG_NOTIFIED.0;
        assert_eq!(plane.count(told).packets, 2);
    });
}

#[test]
fn root_the_icmp_checksum_is_right_for_every_receiver() {
    in_node(|| {
        let plane = plane();
        let mut told = 0;
        for n in 0..256 {
            let packet = udp6(&format!("fd00:9:{:x}::{n:x}", n * 0x101), "fd00:3::9", FITS);
            let answer = run(&plane, &packet);
            // At most sixteen per millisecond.
            if answer.verdict != verdict::REDIRECT {
                continue;
            }
            let ip = &answer.frame[14..];
            let pseudo = [&ip[8..40], &[0, 0, 2, 8, 0, 0, 0, 58], &ip[40..]].concat();
            assert_eq!(sum(&pseudo), 0xffff, "{n}");
            told += 1;
        }
        assert!(told >= 16, "{told}");
    });
}

#[test]
fn root_icmp_errors_and_fragments_cause_no_icmp_error() {
    in_node(|| {
        let plane = plane();
        let whole = udp4("10.1.0.1", "10.3.7.1", FITS);
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut packet = whole.clone();
            change(&mut packet);
            packet[10..12].fill(0);
            let checksum = !sum(&packet[..20]);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            let run = run(&plane, &packet);
            assert!(
                run.verdict == verdict::REDIRECT || run.frame == frame(&packet),
                "left as it was"
            );
            run.verdict
        };
        assert_eq!(with(&|_| {}), verdict::REDIRECT);
        // Without an entry in the kernel, packets that cannot be forwarded are dropped.
        assert_eq!(with(&|packet| packet[6] = 0), verdict::DROP, "may be fragmented");
        assert_eq!(with(&|packet| packet[7] = 9), verdict::DROP, "not the first fragment");
        for (kind, told) in [(8, true), (0, true), (3, false), (11, false), (5, false)] {
            let verdict = with(&|packet| {
                packet[9] = 1;
                packet[20] = kind;
            });
            assert_eq!(verdict == verdict::REDIRECT, told, "ICMP type {kind}");
        }
        for (kind, told) in [(128, true), (129, true), (1, false), (2, false)] {
            let mut packet = udp6("fd00:9::9", "fd00:3::9", FITS);
            packet[6] = 58;
            packet[40] = kind;
            assert_eq!(
                run(&plane, &packet).verdict == verdict::REDIRECT,
                told,
                "ICMPv6 type {kind}"
            );
        }
    });
}

#[test]
fn root_icmp_errors_are_rate_limited() {
    in_node(|| {
        let plane = plane();
        let packet = udp4("10.1.0.1", "10.3.7.1", FITS);
        let mut one = nix::sched::CpuSet::new();
        one.set(0).unwrap();
        nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &one).unwrap();
        let started = std::time::Instant::now();
        let told = (0..2000).filter(|_| run(&plane, &packet).verdict == verdict::REDIRECT).count();
        // 16 per 1.05 ms.
        let periods = started.elapsed().as_millis() as usize + 2;
        assert!(told <= 16 * periods, "{told} in {periods} ms");
        assert!(told >= 16);
    });
}
