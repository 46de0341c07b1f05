//! The ring of outer headers, compared with a model: a packet gets its own header back, or is
//! dropped.

use bpf::measure::{run_once, verdict};
use bpf::srv6::types::reason;
use bpf::{Skb, Srv6};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use testkit::Random;
use wire::protocol::IPV4;
use wire::{Ipv6Packet, SrhPacket};

use crate::bed::*;
use crate::function::{PATH, SLOTS, decrease_ttl, with_function};

/// `TC_ACT_*` of linux/pkt_cls.h.
const SHOT: i32 = 2;
const REDIRECT: i32 = 7;

/// A packet in the function, with its state in the kernel.
struct Inside {
    /// Number of packets that entered before it.
    number: u32,
    skb: Skb,
    frame: Vec<u8>,
}

fn source(number: u32) -> String {
    format!("fd00:c::{:x}:{:x}", number >> 16, number & 0xffff)
}

/// Sends a packet with a unique header into the function.
fn enter(plane: &Srv6, number: u32) -> Inside {
    let inner = udp4("10.1.0.1", "10.2.0.1", (number % 100) as usize);
    let packet = srv6(&source(number), &PATH, 1, IPV4, &inner);
    let stripped = run_once(plane.program(), index("l"), &frame(&packet)).unwrap();
    assert_eq!(stripped.verdict, verdict::REDIRECT);
    let run = plane.run_inwards(index("l"), Skb::default(), &stripped.frame).unwrap();
    assert_eq!(run.verdict, -1, "for the kernel");
    let mut frame = run.frame;
    decrease_ttl(&mut frame[14..]);
    Inside { number, skb: Skb { from: index("l"), ..run.skb }, frame }
}

fn lost(plane: &Srv6) -> u64 {
    plane.count(reason::REASONS.0 + reason::REASON_STATE_LOST.0).packets
}

/// Lets the packet leave: it gets its own header, or is dropped if its slot has been reused since.
fn leave(plane: &Srv6, inside: &Inside, entered: u32) {
    let before = lost(plane);
    let run = plane.run_outwards(index("r"), inside.skb, &inside.frame).unwrap();
    if entered - inside.number > SLOTS {
        // Packets that the peers send by themselves are dropped on entry and counted too.
        assert!(run.verdict == SHOT && lost(plane) > before, "{}", inside.number);
        return;
    }
    assert_eq!(run.verdict, REDIRECT, "{} of {entered}", inside.number);
    assert_eq!((run.skb.time, run.skb.mark), (0, 0));
    let outer = Ipv6Packet::new_checked(&run.frame[14..]).unwrap();
    assert_eq!(outer.src(), source(inside.number).parse::<std::net::Ipv6Addr>().unwrap());
    assert_eq!(outer.dst(), PATH[1].parse::<std::net::Ipv6Addr>().unwrap());
    let srh = SrhPacket::new_checked(outer.payload()).unwrap();
    assert_eq!(srh.segments_left(), 0);
    let length = (inside.number % 100) as usize;
    assert_eq!(srh.payload(), udp4("10.1.0.1", "10.2.0.1", length), "as it came");
}

#[test]
fn root_a_packet_gets_its_own_header_or_none() {
    with_function(|plane| {
        // A single ring, since the program has one per CPU.
        let mut one = CpuSet::new();
        one.set(0).unwrap();
        sched_setaffinity(Pid::from_raw(0), &one).unwrap();
        let mut random = Random::seeded();
        let mut below = |n: u64| (random.bits() % n) as usize;
        let mut inside: Vec<Inside> = Vec::new();
        let mut entered = 0;
        for _ in 0..20_000 {
            match below(10) {
                0..4 => {
                    inside.push(enter(plane, entered));
                    entered += 1;
                }
                // A packet that is fragmented or duplicated leaves more than once.
                4..7 if !inside.is_empty() => {
                    let which = below(inside.len() as u64);
                    leave(plane, &inside[which], entered);
                }
                7..9 if !inside.is_empty() => {
                    let which = below(inside.len() as u64);
                    leave(plane, &inside.swap_remove(which), entered);
                }
                // A tag that no packet has: with another prefix, CPU or counter.
                _ => {
                    let Some(some) = inside.last() else { continue };
                    let time = some.skb.time ^ 1 << below(64);
                    let is_anothers = inside.iter().any(|other| other.skb.time == time);
                    let forged = Skb { time, ..some.skb };
                    let run = plane.run_outwards(index("r"), forged, &some.frame).unwrap();
                    // The slot of a packet that left may still be valid. It gets that packet's own
                    // header.
                    let near = time.abs_diff(some.skb.time) <= u64::from(SLOTS);
                    assert!(run.verdict == SHOT || is_anothers || near, "{time:x}");
                }
            }
        }
        assert!(entered > 5 * SLOTS && lost(plane) > 0);
    });
}

#[test]
fn root_a_packet_from_another_interface_does_not_leave() {
    with_function(|plane| {
        let inside = enter(plane, 0);
        let dropped = || plane.count(reason::REASONS.0 + reason::REASON_LOCAL_ANSWER.0).packets;
        // A packet from outside with a valid tag, and a packet that this node sends.
        for from in [index("r"), 0] {
            let before = dropped();
            let skb = Skb { from, ..inside.skb };
            let run = plane.run_outwards(index("r"), skb, &inside.frame).unwrap();
            assert!(run.verdict == SHOT && dropped() > before, "{from}");
        }
        // A frame with a forged tag on entry.
        let mut forged = inside.frame.clone();
        forged[6..12].copy_from_slice(&[7; 6]);
        let run = plane.run_inwards(index("l"), Skb::default(), &forged).unwrap();
        assert_eq!(run.verdict, SHOT);
        leave(plane, &inside, 1);
    });
}
