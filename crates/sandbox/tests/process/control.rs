//! Tests of control-plane access to the tables of a sandboxed program.

use p4_object::{Entry, Key};
use sandbox::process::{Config, Isolation};
use sandbox::{ControlError, MAX_PIECE, MapError, Maps, Operation};

use super::common::*;
use super::isolation::of_group;

fn key(number: u32) -> Key {
    Key::Bytes(number.to_ne_bytes().to_vec())
}

fn put(number: u32) -> Operation {
    Operation::Put(Entry {
        map: 1,
        key: key(number),
        value: u64::from(number).to_ne_bytes().to_vec(),
    })
}

#[test]
fn batches_are_made_as_a_whole_and_read_in_pieces() {
    let mut sandbox = sandbox(&counting(1), patient());
    assert_eq!(sandbox.maps().len(), 3);
    sandbox.apply(&(0..4000).map(put).collect::<Vec<_>>()).unwrap();
    let failed = sandbox.apply(&(3990..5000).map(put).collect::<Vec<_>>());
    assert!(
        matches!(failed, Err(ControlError::Operation { at: 106, why: MapError::Full(4096) })),
        "{failed:?}"
    );
    let (mut from, mut all) = (Some(0), Vec::new());
    while let Some(at) = from {
        let piece = sandbox.read(1, at, u32::MAX).unwrap();
        assert!(piece.entries.len() <= 1024);
        all.extend(piece.entries);
        from = piece.next;
    }
    assert_eq!(all.len(), 4000);
    let none = sandbox.read(9, 0, 1);
    assert!(matches!(none, Err(ControlError::Map(MapError::NoMap))), "{none:?}");
    assert!(sandbox.status().process.is_some(), "it still runs");
}

/// The program's counter equals the number of packets, and table changes take effect between
/// packets.
#[test]
fn counters_are_read_while_packets_fly() {
    let mut sandbox = sandbox(&counting(1), patient());
    let mut traffic = Traffic::new();
    for round in 0..200 {
        traffic.step(&mut sandbox);
        sandbox.apply(&[put(round), Operation::Delete { map: 1, key: key(round) }]).unwrap();
        let seen = sandbox.get(0, &key(0)).unwrap().unwrap();
        let seen = u64::from_ne_bytes(seen.try_into().unwrap());
        assert!(seen <= sandbox.counters().packets.submitted);
    }
    traffic.drain(&mut sandbox);
    let seen = sandbox.get(0, &key(0)).unwrap().unwrap();
    assert_eq!(u64::from_ne_bytes(seen.try_into().unwrap()), traffic.answered);
}

#[test]
fn values_are_read_by_their_keys() {
    let mut sandbox = sandbox(&counting(1), patient());
    let even = (0..2 * MAX_PIECE as u32).step_by(2);
    sandbox.apply(&even.clone().map(put).collect::<Vec<_>>()).unwrap();
    // More than one request, in another order than the map's.
    let keys: Vec<_> = (0..2 * MAX_PIECE as u32).rev().map(key).collect();
    let values = sandbox.get_all(1, &keys).unwrap();
    let wanted: Vec<_> = keys.iter().map(|key| sandbox.get(1, key).unwrap()).collect();
    assert_eq!(values, wanted);
    assert_eq!(values.iter().flatten().count(), even.count());
    assert!(sandbox.get_all(9, &keys).is_err());
    assert!(sandbox.status().process.is_some(), "it still runs");
}

/// With SCHED_IDLE, busy processes of other tenants could keep it from answering.
#[test]
fn a_process_in_the_background_is_scheduled_while_a_request_waits() {
    let config = Config { is_background: true, cpu: Some(90), ..patient() };
    let mut sandbox = sandbox(&counting(1), config);
    let process = sandbox.status().process.unwrap().cast_signed();
    // SAFETY: these calls have no memory arguments.
    let policy = || unsafe { libc::sched_getscheduler(process) };
    // SAFETY: as above.
    let signal = |signal| unsafe { libc::kill(process, signal) };
    // Other groups see the weight of its group alone.
    let idle = || of_group(process.cast_unsigned(), "cpu.idle").map(|text| text.trim() == "1");
    let has_group = sandbox.status().isolation.has(Isolation::CPU);
    let of = |is_idle| has_group.then_some(is_idle);
    assert_eq!((policy(), idle()), (libc::SCHED_IDLE, of(true)));
    signal(libc::SIGSTOP);
    std::thread::scope(|scope| {
        let applied = scope.spawn(|| sandbox.apply(&[put(1)]));
        until("the request waits", || policy() == libc::SCHED_OTHER);
        assert_eq!(idle(), of(false));
        signal(libc::SIGCONT);
        applied.join().unwrap().unwrap();
    });
    assert_eq!((policy(), idle()), (libc::SCHED_IDLE, of(true)));
}
