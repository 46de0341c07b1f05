//! Tests of packets and verdicts.

use std::time::Duration;

use sandbox::process::{Busy, CopyBack, Decision, Packet, Reason};

use super::common::*;

#[test]
fn packets_come_back_with_verdicts() {
    for (object, decision, clone) in [
        (pass(), Decision::Pass, None),
        (drop_all(), Decision::Drop, None),
        (redirect(7), Decision::Redirect(7), Some(8)),
    ] {
        let mut sandbox = sandbox(&object, patient());
        for slot in 0..100 {
            sandbox.submit(packet(slot)).unwrap();
        }
        assert_eq!(sandbox.submit(packet(5)), Err(Busy::Flying));
        assert_eq!(sandbox.submit(packet(FRAMES)), Err(Busy::NoPacket));
        let long = Packet { start: FRAME - 63, ..packet(200) };
        assert_eq!(sandbox.submit(long), Err(Busy::NoPacket));
        assert_eq!(sandbox.submit(Packet { start: u32::MAX, ..long }), Err(Busy::NoPacket));
        sandbox.flush();
        let mut answers = Vec::new();
        until("answers", || {
            sandbox.poll(&mut answers);
            answers.len() == 100
        });
        for (slot, answer) in answers.iter().enumerate() {
            assert_eq!(answer.slot as usize, slot);
            assert_eq!((answer.decision, answer.clone), (decision, clone));
            assert_eq!((answer.start, answer.length), (256, 64));
            assert_eq!(answer.reason, Reason::Program);
        }
        let counters = sandbox.counters();
        assert_eq!((counters.packets.submitted, counters.packets.policy), (100, 0));
        assert_eq!(counters.packets.cloned, if clone.is_some() { 100 } else { 0 });
    }
}

/// With a spin time of zero, both sides sleep and wake each other.
#[test]
fn a_sleeping_side_is_woken() {
    let spin = Duration::ZERO;
    let mut sandbox = sandbox(&pass(), sandbox::process::Config { spin, ..patient() });
    let mut answers = Vec::new();
    for round in 0..300 {
        sandbox.submit(packet(round % FRAMES)).unwrap();
        sandbox.flush();
        answers.clear();
        sandbox.wait(&mut answers, Duration::from_secs(5));
        assert_eq!(answers.len(), 1, "round {round}");
    }
    sandbox.wait(&mut answers, Duration::from_secs(5));
    assert_eq!(answers.len(), 1, "there is nothing to wait for");
}

#[test]
fn no_more_packets_fly_than_there_are_places() {
    let config = sandbox::process::Config { places: 3, ..patient() };
    let mut sandbox = sandbox(&pass(), config);
    for slot in 0..4 {
        sandbox.submit(packet(slot)).unwrap();
    }
    assert_eq!(sandbox.submit(packet(4)), Err(Busy::Full));
    let mut traffic = Vec::new();
    sandbox.flush();
    until("answers", || {
        sandbox.poll(&mut traffic);
        traffic.len() == 4
    });
    sandbox.submit(packet(4)).unwrap();
}

#[test]
fn copies_go_and_come_back() {
    let mut copies = CopyBack::new(sandbox(&pass(), patient()), 128);
    let packets: Vec<Vec<u8>> = (0..200).map(|at| vec![at as u8; 60 + at]).collect();
    for (token, packet) in packets.iter().enumerate() {
        copies.submit(token as u64, packet, 1).unwrap();
    }
    assert_eq!(copies.submit(9, &[0; 1921], 1), Err(Busy::NoPacket));
    copies.flush();
    let mut seen = 0;
    until("answers", || {
        copies.poll(|token, answer, bytes| {
            assert_eq!(answer.decision, Decision::Pass);
            assert_eq!(bytes, Some(&*packets[token as usize]));
            seen += 1;
        });
        seen == 200
    });
}

#[test]
fn a_policy_leaves_copies_as_they_were() {
    let config = sandbox::process::Config { policy: sandbox::process::Policy::Open, ..patient() };
    let mut copies = CopyBack::new(sandbox(&wild(), config), 128);
    copies.submit(1, &[1; 60], 1).unwrap();
    copies.flush();
    let mut seen = None;
    until("an answer", || {
        copies.poll(|_, answer, bytes| seen = Some((answer.decision, bytes.is_none())));
        seen.is_some()
    });
    assert_eq!(seen, Some((Decision::Pass, true)));
}
