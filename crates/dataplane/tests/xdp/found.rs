//! Cached SIDs and policies are not used after a change, and every packet is counted.

use std::net::Ipv6Addr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bpf::Srv6;
use bpf::measure::{run_once, verdict};
use bpf::srv6::{Sizes, types};
use dataplane::forwarding::{
    Behavior, Endpoint, Forwarding, Map, Owner, Policy, PolicyId, Port, Weighted,
};
use dataplane::xdp::Tables;
use ipnet::Ipv6Net;
use netlink::Mac;
use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;
use srv6::{Form, SegmentList, Sid};
use wire::{Headers, protocol};

use crate::bed::*;

const TENANT: u32 = 1;

/// Pins the thread to its CPU: each CPU has separate caches.
fn stay_on_this_processor() {
    let mut cpus = CpuSet::new();
    cpus.set(sched_getcpu().unwrap()).unwrap();
    sched_setaffinity(Pid::from_raw(0), &cpus).unwrap();
}

/// Returns a state with both ports only. The left one belongs to a tenant if `of_tenant`.
fn ports(of_tenant: bool) -> Forwarding {
    let port = |name: &str, mac: [u8; 6], owner| {
        let name = name.to_owned();
        let port = Port {
            mac: Mac(mac),
            owner,
            exit: None,
            closed: false,
            edge: false,
            requires_hmac: false,
            name,
        };
        (index(&port.name), port)
    };
    let owner = if of_tenant { Owner::Tenant(TENANT) } else { Owner::Nobody };
    Forwarding {
        source: "fd00:1::".parse().unwrap(),
        ports: [port("l", NODE_LEFT, owner), port("r", [2, 0, 0, 0, 0, 2], Owner::Nobody)].into(),
        ..Forwarding::default()
    }
}

fn endpoint(behavior: Behavior) -> Endpoint {
    Endpoint { in_kernel: true, ..Endpoint::new(behavior) }
}

fn address_of(sid: u32) -> Ipv6Addr {
    Ipv6Addr::from(0xfd00_0001_u128 << 96 | u128::from(sid))
}

fn net(sid: u32) -> Ipv6Net {
    Ipv6Net::from(address_of(sid))
}

/// Returns `sids` SIDs with End.
fn many(sids: u32) -> Map<Ipv6Net, Endpoint> {
    (0..sids).map(|n| (net(n), endpoint(Behavior::End))).collect()
}

/// Returns a frame to be addressed to one of them.
fn to_sids() -> Vec<u8> {
    let inner = udp4("10.1.0.1", "10.2.0.1", 22);
    frame(&srv6("fd00:9::1", &["fd00:1::", "fd00:2::1"], 1, protocol::IPV4, &inner))
}

fn headers(tables: &Tables, packet: &[u8]) -> Option<Headers> {
    let run = run_once(tables.program().program(), index("l"), &frame(packet)).unwrap();
    (run.verdict == verdict::REDIRECT).then(|| Headers::dissect(&run.frame).unwrap())
}

#[test]
fn root_a_changed_sid_is_not_the_one_that_was_found() {
    in_node(|| {
        stay_on_this_processor();
        let mut tables = Tables::new(Srv6::load(Sizes::default()).unwrap());
        let sid = "fd00:1::1/128".parse().unwrap();
        let with = |behavior: Option<Behavior>| {
            let sids = behavior.map(|behavior| (sid, endpoint(behavior)));
            Forwarding { sids: sids.into_iter().collect(), ..ports(false) }
        };
        let inner = udp4("10.1.0.1", "10.2.0.1", 22);
        let on_path = srv6("fd00:9::1", &["fd00:1::1", "fd00:2::1"], 1, protocol::IPV4, &inner);
        let last = srv6("fd00:9::1", &["fd00:1::1"], 0, protocol::IPV4, &inner);
        let forwards = |tables: &Tables| [&on_path, &last].map(|p| headers(tables, p).is_some());
        let count = |tables: &Tables| tables.count_of_sid(&sid).unwrap().packets;

        tables.change_to(with(Some(Behavior::End))).unwrap();
        assert_eq!((forwards(&tables), count(&tables)), ([true, false], 1));
        assert_eq!((forwards(&tables), count(&tables)), ([true, false], 2));
        let dx4 = Behavior::EndDx4 { next_hop: [0, 0, 0, 0].into() };
        tables.change_to(with(Some(dx4))).unwrap();
        assert_eq!((forwards(&tables), count(&tables)), ([false, true], 3), "it is the same SID");
        tables.change_to(with(None)).unwrap();
        assert_eq!(forwards(&tables), [false, false]);
        tables.change_to(with(Some(Behavior::End))).unwrap();
        assert_eq!(count(&tables), 0, "one that was gone begins anew");
        assert_eq!((forwards(&tables), count(&tables)), ([true, false], 1));
    });
}

/// SIDs are added after their ports are closed, and removed before their ports are opened.
#[test]
fn root_no_sid_is_reached_while_a_port_closes_or_opens() {
    const SIDS: u32 = 20_000;
    in_node(|| {
        let mut tables = Tables::new(Srv6::load(Sizes { sids: SIDS, ..Sizes::default() }).unwrap());
        let program = tables.program().program().try_clone_to_owned().unwrap();
        let (open, mut closed) = (ports(false), Forwarding { sids: many(SIDS), ..ports(false) });
        closed.ports.values_mut().for_each(|port| port.edge = true);
        tables.change_to(open.clone()).unwrap();
        let (is_over, sent) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let mut packet = to_sids();
                while !is_over.load(Ordering::Relaxed) {
                    let number = sent.fetch_add(1, Ordering::Relaxed) % 64;
                    packet[38..54].copy_from_slice(&address_of(number).octets());
                    let run = run_once(program.as_fd(), index("l"), &packet).unwrap();
                    assert_ne!(run.verdict, verdict::REDIRECT, "SID {number}");
                }
            });
            let mut changes = 0;
            // A busy machine may not run the sender for a while.
            while !sender.is_finished() && (changes < 3 || sent.load(Ordering::Relaxed) < 100) {
                tables.change_to(closed.clone()).unwrap();
                tables.change_to(open.clone()).unwrap();
                changes += 1;
            }
            is_over.store(true, Ordering::Relaxed);
            sender.join().unwrap();
        });
    });
}

/// Counters are reused. The cached count of a deleted SID must not be added to that of the next
/// one.
#[test]
fn root_a_counter_that_is_used_again_counts_from_zero() {
    in_node(|| {
        stay_on_this_processor();
        let sizes = Sizes { sids: 1, policies: 1, ..Sizes::default() };
        let mut tables = Tables::new(Srv6::load(sizes).unwrap());
        let inner = udp4("10.1.0.1", "10.2.0.1", 22);
        // More SIDs than there are counters, and two of them repeatedly.
        for n in [1, 2, 3, 4, 5, 6, 5, 6, 5, 6] {
            let text = format!("fd00:1::{n}");
            let sid = format!("{text}/128").parse().unwrap();
            let sids = [(sid, endpoint(Behavior::End))].into_iter().collect();
            tables.change_to(Forwarding { sids, ..ports(false) }).unwrap();
            let packet = srv6("fd00:9::1", &[&text, "fd00:2::1"], 1, protocol::IPV4, &inner);
            for sent in 1..=n {
                assert!(headers(&tables, &packet).is_some());
                assert_eq!(tables.count_of_sid(&sid).unwrap().packets, sent, "of {sid}");
            }
        }
    });
}

#[test]
fn root_a_changed_route_of_a_tenant_is_not_the_one_that_was_found() {
    in_node(|| {
        stay_on_this_processor();
        let mut tables = Tables::new(Srv6::load(Sizes::default()).unwrap());
        let with = |routes: &[(&str, &str)]| {
            let mut forwarding = ports(true);
            for (net, segment) in routes {
                let id = PolicyId::Named(Some(TENANT), (*segment).into());
                forwarding.prefixes.insert((TENANT, net.parse().unwrap()), id.clone());
                let segments = SegmentList(vec![Sid(segment.parse().unwrap())]);
                let lists = vec![Weighted { segments, weight: 1 }];
                let policy =
                    Policy { lists, form: Form::EncapsRed, session: None, in_kernel: false };
                forwarding.policies.insert(id, policy);
            }
            forwarding
        };
        for (net, host, packet) in [
            ("10.2.0.0/16", "10.2.0.1/32", udp4("10.1.0.1", "10.2.0.1", 22)),
            ("fd00:d::/32", "fd00:d::1/128", udp6("fd00:c::1", "fd00:d::1", 22)),
        ] {
            let towards = |tables: &Tables| {
                let seen = headers(tables, &packet)?;
                Some(seen.outer().unwrap().dst.to_string())
            };
            let (one, other) = ("fd00:2::1", "fd00:2::2");
            for (routes, expected) in [
                (vec![(net, one)], Some(one)),
                (vec![(net, other)], Some(other)),
                (vec![(net, other), (host, one)], Some(one)),
                (vec![(net, other)], Some(other)),
                (vec![], None),
                (vec![(host, one)], Some(one)),
            ] {
                tables.change_to(with(&routes)).unwrap();
                for _ in 0..2 {
                    assert_eq!(towards(&tables).as_deref(), expected, "{routes:?}");
                }
            }
        }
    });
}

/// With more active SIDs than the cache holds, entries are evicted all the time.
#[test]
fn root_every_packet_is_counted_where_sids_push_each_other_out() {
    const SIDS: u32 = 3 << types::limit::LIMIT_FOUND_BITS.0 >> 1;
    in_node(|| {
        stay_on_this_processor();
        let sizes = Sizes { sids: SIDS, ..Sizes::default() };
        let mut tables = Tables::new(Srv6::load(sizes).unwrap());
        tables.change_to(Forwarding { sids: many(SIDS), ..ports(false) }).unwrap();
        let mut packet = to_sids();
        for round in 1..=3 {
            for n in 0..SIDS {
                packet[38..54].copy_from_slice(&address_of(n).octets());
                let run = run_once(tables.program().program(), index("l"), &packet).unwrap();
                assert_eq!(run.verdict, verdict::REDIRECT);
            }
            for n in 0..SIDS {
                assert_eq!(tables.count_of_sid(&net(n)).unwrap().packets, round, "SID {n}");
            }
        }
    });
}

/// With a concurrent reader, a count must never decrease.
#[test]
fn root_no_count_falls_while_sids_push_each_other_out() {
    const SIDS: u32 = 3 << types::limit::LIMIT_FOUND_BITS.0 >> 1;
    const READ: u32 = 64;
    in_node(|| {
        let sizes = Sizes { sids: SIDS, ..Sizes::default() };
        let mut tables = Tables::new(Srv6::load(sizes).unwrap());
        tables.change_to(Forwarding { sids: many(SIDS), ..ports(false) }).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reads = scope.spawn(|| {
                let mut last = vec![0; READ as usize];
                let mut reads = 0_u64;
                while !is_over.load(Ordering::Relaxed) {
                    for n in 0..READ {
                        let now = tables.count_of_sid(&net(n)).unwrap().packets;
                        let last = &mut last[n as usize];
                        assert!(now >= *last, "SID {n}: {last}, then {now}");
                        *last = now;
                    }
                    reads += 1;
                }
                reads
            });
            let mut packet = to_sids();
            for round in 0..3 {
                for n in 0..SIDS {
                    // The SIDs that are read are more active, and therefore evicted more often.
                    for n in [n, n % READ] {
                        packet[38..54].copy_from_slice(&address_of(n).octets());
                        let run = run_once(tables.program().program(), index("l"), &packet);
                        assert_eq!(run.unwrap().verdict, verdict::REDIRECT, "round {round}");
                    }
                }
            }
            is_over.store(true, Ordering::Relaxed);
            assert!(reads.join().unwrap() > 100);
        });
        let sent = 3 * (u64::from(SIDS) + u64::from(SIDS));
        let counted = (0..SIDS).map(|n| tables.count_of_sid(&net(n)).unwrap().packets);
        assert_eq!(counted.sum::<u64>(), sent);
    });
}
