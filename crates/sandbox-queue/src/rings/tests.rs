use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::*;
use crate::memory::sealed;

const QUEUE: u32 = 1;

fn all(places: u32) -> (Notices, SwitchEnd, ProcessEnd) {
    let file = sealed("rings", Rings::bytes(places, 2)).unwrap();
    let rings = || Rings::new(&file, places, 2).unwrap();
    let switch = Arc::new(rings());
    (Notices::new(switch.clone()), SwitchEnd::new(switch, QUEUE), ProcessEnd::new(rings()))
}

fn ends(places: u32) -> (SwitchEnd, ProcessEnd) {
    let (_, switch, process) = all(places);
    (switch, process)
}

fn descriptor(slot: u32) -> Descriptor {
    // Every second descriptor has a packet time; the first one's is 0.
    let at_ns = slot.is_multiple_of(2).then_some(u64::from(slot) << 40);
    Descriptor { slot, generation: 2, start: 3, length: 4, port: 5, at_ns }
}

fn reply(slot: u32) -> Reply {
    Reply {
        slot,
        generation: 2,
        start: 3,
        length: 4,
        verdict: 5,
        port: 6,
        has_clone: 1,
        clone_port: 7,
    }
}

#[test]
fn a_descriptor_is_taken_once_it_is_published() {
    let (mut switch, mut process) = ends(4);
    for round in 0..9 {
        switch.put(descriptor(round));
        assert_eq!(process.waiting(QUEUE), 0);
        switch.show();
        assert_eq!(process.waiting(QUEUE), 1);
        assert_eq!(process.take(QUEUE), descriptor(round));
        process.put(QUEUE, reply(round));
        assert_eq!(switch.answered(), Some(0));
        assert!(!process.show(QUEUE));
        assert_eq!(switch.answered(), Some(1));
        assert_eq!(switch.take(), reply(round));
    }
}

#[test]
fn a_queue_that_is_opened_again_goes_on() {
    let file = sealed("rings", Rings::bytes(4, 2)).unwrap();
    let rings = || Rings::new(&file, 4, 2).unwrap();
    let mut process = ProcessEnd::new(rings());
    for round in 0..9 {
        let shared = Arc::new(rings());
        assert!(shared.is_quiet(QUEUE));
        let mut switch = SwitchEnd::new(Arc::clone(&shared), QUEUE);
        assert_eq!(switch.answered(), Some(0));
        switch.put(descriptor(round));
        switch.show();
        assert!(!shared.is_quiet(QUEUE));
        assert_eq!((process.waiting(QUEUE), process.take(QUEUE)), (1, descriptor(round)));
        process.put(QUEUE, reply(round));
        process.show(QUEUE);
        assert_eq!((switch.answered(), switch.take()), (Some(1), reply(round)));
    }
}

#[test]
fn more_verdicts_than_packets_are_a_lie() {
    let (mut switch, mut process) = ends(4);
    process.put(QUEUE, reply(0));
    process.show(QUEUE);
    assert_eq!(switch.answered(), None);
    switch.put(descriptor(0));
    assert_eq!(switch.answered(), None, "not shown yet");
    switch.show();
    assert_eq!(switch.answered(), Some(1));
}

#[test]
fn digests_have_room_or_are_counted() {
    let (mut notices, _, mut process) = all(4);
    process.put_digest(7, &[1, 2, 3]);
    assert_eq!(notices.digests(), Some(0), "not shown yet");
    process.show(QUEUE);
    assert_eq!(notices.digests(), Some(1));
    let (id, length, bytes) = notices.take_digest();
    assert_eq!((id, length, &bytes[..4]), (7, 3, &[1, 2, 3, 0][..]));
    notices.took_digests();
    for round in 0..DIGESTS + 9 {
        process.put_digest(round, &[0xab; MAX_DIGEST as usize]);
    }
    process.show(QUEUE);
    assert_eq!((notices.digests(), notices.lost_digests()), (Some(DIGESTS), 9));
    for round in 0..DIGESTS {
        assert_eq!(notices.take_digest(), (round, MAX_DIGEST, [0xab; MAX_DIGEST as usize]));
    }
    process.put_digest(1, &[]);
    assert_eq!(notices.lost_digests(), 10, "nobody has said that they were taken");
    notices.took_digests();
    process.put_digest(1, &[]);
    process.show(QUEUE);
    assert_eq!(notices.digests(), Some(1));
}

#[test]
fn more_digests_than_there_is_room_for_are_a_lie() {
    let (notices, _, process) = all(4);
    process.rings.word(DIGESTS_PUT).store(DIGESTS + 1, Ordering::Release);
    assert_eq!(notices.digests(), None);
    process.rings.word(DIGESTS_PUT).store(u32::MAX, Ordering::Release);
    assert_eq!(notices.digests(), None);
}

#[test]
fn sleepers_are_woken() {
    let (mut switch, mut process) = ends(4);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while process.waiting(QUEUE) == 0 {
                process.sleep(Duration::from_secs(60));
            }
            process.take(QUEUE);
            process.put(QUEUE, reply(0));
            process.show(QUEUE)
        });
        switch.put(descriptor(0));
        switch.show();
        while switch.answered() == Some(0) {
            std::hint::spin_loop();
        }
    });
    assert!(begin.elapsed() < Duration::from_secs(30), "woken by its timeout");
    assert!(!switch.ask(), "there is a verdict");
    switch.take();
    assert!(switch.ask());
}
