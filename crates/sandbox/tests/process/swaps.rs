//! Tests of program swaps.

use std::time::Duration;

use p4_object::{Entry, Key};
use sandbox::process::{BackOff, Config, Decision, Expected, SelfTest, StartError};
use sandbox::{Maps, Operation};

use super::common::*;

const ALL: fn(&p4_object::Map) -> bool = |_| true;

fn count(sandbox: &mut sandbox::process::Sandbox) -> u64 {
    let value = sandbox.get(0, &Key::index(0)).expect("an answer").expect("an entry");
    u64::from_ne_bytes(value.try_into().expect("eight bytes"))
}

/// A hundred swaps during traffic: each packet has a verdict and is counted, and table contents
/// persist.
#[test]
fn no_packet_is_lost_in_a_hundred_swaps() {
    let mut sandbox = sandbox(&counting(0), patient());
    let entry = Entry { map: 1, key: Key::Bytes(vec![1, 2, 3, 4]), value: vec![9; 8] };
    sandbox.apply(&[Operation::Put(entry.clone())]).unwrap();
    let preparer = sandbox.preparer();
    let (give, prepared) = std::sync::mpsc::sync_channel(1);
    let mut traffic = Traffic::new();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for version in 1..=100 {
                let ready = preparer.prepare(&counting(version), &SelfTest::default());
                give.send(ready.expect("it is ready")).expect("somebody waits");
            }
        });
        let mut swaps = 0;
        until_long(|| {
            traffic.step(&mut sandbox);
            if let Ok(ready) = prepared.try_recv() {
                swaps += 1;
                assert_eq!(sandbox.swap(ready, &[], ALL).unwrap(), swaps + 1);
            }
            swaps == 100
        });
    });
    traffic.drain(&mut sandbox);
    let counters = sandbox.counters();
    assert_eq!(
        (counters.packets.passed, counters.packets.policy),
        (counters.packets.submitted, 0),
        "{counters:?}"
    );
    assert_eq!(count(&mut sandbox), counters.packets.submitted);
    assert_eq!(sandbox.get(1, &entry.key).unwrap(), Some(entry.value));
}

fn until_long(mut is_so: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < std::time::Duration::from_secs(120), "not in two minutes");
    }
}

#[test]
fn a_failed_swap_keeps_the_old_version() {
    let mut sandbox = sandbox(&counting(0), patient());
    let preparer = sandbox.preparer();
    let bad = preparer.prepare(b"nothing", &SelfTest::default());
    assert!(matches!(bad, Err(StartError::Refused(_))), "{bad:?}");
    let wanted = Expected { decision: Decision::Drop, clone: None, packet: None };
    let test = SelfTest { setup: vec![], packets: vec![(1, vec![0; 60], wanted.clone())] };
    let bad = preparer.prepare(&pass(), &test);
    assert!(matches!(bad, Err(StartError::SelfTest { at: 0, .. })), "{bad:?}");
    let good = preparer.prepare(&drop_all(), &test).unwrap();
    let change = Operation::Clear { map: 5 };
    let failed = sandbox.swap(good, std::slice::from_ref(&change), ALL);
    assert!(matches!(failed, Err(StartError::Carry(_))), "{failed:?}");
    assert_eq!((sandbox.status().version, sandbox.counters().swaps), (1, 0));
    let mut traffic = Traffic::new();
    traffic.step(&mut sandbox);
    traffic.drain(&mut sandbox);
    assert_eq!(sandbox.counters().packets.passed, u64::from(FRAMES));
    let good = preparer.prepare(&drop_all(), &test).unwrap();
    assert_eq!(sandbox.swap(good, &[], ALL).unwrap(), 2);
    traffic.step(&mut sandbox);
    traffic.drain(&mut sandbox);
    assert_eq!(sandbox.counters().packets.dropped, u64::from(FRAMES));
    assert!(sandbox.maps().is_empty());
}

/// Maps that are not carried, or have a different shape, start empty.
#[test]
fn maps_are_carried_by_choice() {
    let mut sandbox = sandbox(&counting(0), patient());
    let mut traffic = Traffic::new();
    traffic.step(&mut sandbox);
    traffic.drain(&mut sandbox);
    assert_eq!(count(&mut sandbox), u64::from(FRAMES));
    let preparer = sandbox.preparer();
    let next = preparer.prepare(&counting(1), &SelfTest::default()).unwrap();
    sandbox.swap(next, &[], |map| map.name != "count").unwrap();
    assert_eq!(count(&mut sandbox), 0);
}

/// The values that a swap carried over are those of the next process, too.
#[test]
fn carried_values_outlive_their_process() {
    let mut sandbox = sandbox(&counting(0), patient());
    let mut traffic = Traffic::new();
    traffic.step(&mut sandbox);
    traffic.drain(&mut sandbox);
    let ready = sandbox.preparer().prepare(&counting(1), &SelfTest::default()).unwrap();
    sandbox.swap(ready, &[], ALL).unwrap();
    let first = sandbox.status().process;
    kill(&sandbox);
    until("the next process", || {
        sandbox.look_after();
        let now = sandbox.status().process;
        now.is_some() && now != first
    });
    assert_eq!(count(&mut sandbox), u64::from(FRAMES));
}

/// A swap also succeeds without a running process, with the journal of the last one.
#[test]
fn table_changes_outlive_their_process() {
    let back_off = BackOff { first: Duration::from_secs(3600), ..BackOff::default() };
    let mut sandbox = sandbox(&counting(0), Config { back_off, ..patient() });
    let entry = Entry { map: 1, key: Key::Bytes(vec![1, 2, 3, 4]), value: vec![9; 8] };
    let gone = Key::Bytes(vec![5; 4]);
    let other = Operation::Put(Entry { key: gone.clone(), ..entry.clone() });
    let delete = Operation::Delete { map: 1, key: gone.clone() };
    sandbox.apply(&[Operation::Put(entry.clone()), other, delete]).unwrap();
    let mut traffic = Traffic::new();
    kill(&sandbox);
    until("the end", || {
        traffic.step(&mut sandbox);
        sandbox.status().process.is_none()
    });
    let ready = sandbox.preparer().prepare(&counting(1), &SelfTest::default()).unwrap();
    assert_eq!(sandbox.swap(ready, &[], ALL).unwrap(), 2);
    assert_eq!(sandbox.get(1, &entry.key).unwrap(), Some(entry.value));
    assert_eq!(sandbox.get(1, &gone).unwrap(), None);
    traffic.drain(&mut sandbox);
}

/// Table contents after a swap do not depend on a running process. Both versions have initial
/// entries.
#[test]
fn carried_entries_do_not_depend_on_a_running_process() {
    let back_off = BackOff { first: Duration::from_secs(3600), ..BackOff::default() };
    let first = [of_two(1, 1), of_two(2, 1), of_rules(1, 1), of_rules(2, 1), of_rules(2, 9)];
    let second = [of_two(4, 2), of_two(5, 2), of_rules(7, 2), of_rules(2, 2)];
    let carried = |is_gone: bool| {
        let mut sandbox = sandbox(&filled(first.to_vec()), Config { back_off, ..patient() });
        // The last two are not initial entries of the old version, so they leave no operation.
        let came = [of_two(4, 1), of_rules(7, 1)];
        let mut batch = vec![delete(&first[0])];
        for entry in came {
            let gone = delete(&entry);
            batch.extend([Operation::Put(entry), gone]);
        }
        batch.push(Operation::Put(of_rules(9, 1)));
        sandbox.apply(&batch).unwrap();
        if is_gone {
            kill(&sandbox);
            until("the end", || {
                sandbox.look_after();
                sandbox.status().process.is_none()
            });
        }
        let ready = sandbox.preparer().prepare(&filled(second.to_vec()), &SelfTest::default());
        sandbox.swap(ready.unwrap(), &[], ALL).unwrap();
        [0, 1].map(|map| sandbox.read(map, 0, 9).unwrap().entries)
    };
    let wanted = [vec![of_two(2, 1)], vec![of_rules(1, 1), of_rules(2, 1), of_rules(9, 1)]];
    assert_eq!(carried(false), wanted);
    assert_eq!(carried(true), wanted);
}

fn kill(sandbox: &sandbox::process::Sandbox) {
    let process =
        nix::unistd::Pid::from_raw(sandbox.status().process.expect("a process").cast_signed());
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL).expect("it is there");
}
