//! Tests of processes that exit or are stopped.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sandbox::process::{BackOff, Config, Reason, Sandbox};

use super::common::*;

fn hardy() -> Config {
    let back_off = BackOff {
        first: Duration::from_millis(1),
        most: Duration::from_millis(1),
        failures: 1000,
        window: Duration::from_secs(60),
    };
    Config { back_off, ..patient() }
}

fn signal(sandbox: &Sandbox, signal: Signal) {
    let process = sandbox.status().process.expect("a process");
    kill(Pid::from_raw(process as i32), signal).expect("it is there");
}

/// Kills the process during traffic, repeatedly and at random times.
#[test]
fn every_packet_has_one_answer_whenever_the_process_is_killed() {
    let mut sandbox = sandbox(&pass(), hardy());
    let mut traffic = Traffic::new();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..12 {
        until("the program runs", || {
            traffic.step(&mut sandbox).iter().any(|answer| answer.reason == Reason::Program)
        });
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        for _ in 0..random % 500 {
            traffic.step(&mut sandbox);
        }
        signal(&sandbox, Signal::SIGKILL);
        until("it is seen", || {
            traffic.step(&mut sandbox);
            sandbox.counters().crashed_processes > round
        });
    }
    traffic.drain(&mut sandbox);
    let counters = sandbox.counters();
    assert_eq!(
        (counters.crashed_processes, counters.violating_processes, counters.slow_processes),
        (12, 0, 0)
    );
    assert!(counters.packets.passed > 0 && counters.restarts >= 11, "{counters:?}");
}

#[test]
fn a_process_that_stands_still_is_replaced() {
    let config = Config { deadline: Duration::from_millis(200), ..hardy() };
    let mut sandbox = sandbox(&pass(), config);
    let mut traffic = Traffic::new();
    until("the program runs", || !traffic.step(&mut sandbox).is_empty());
    signal(&sandbox, Signal::SIGSTOP);
    until("it is seen", || {
        traffic.step(&mut sandbox);
        sandbox.counters().slow_processes == 1
    });
    let before = sandbox.counters();
    assert!(before.packets.deadline > 0, "{before:?}");
    until("the next one runs", || {
        traffic.step(&mut sandbox);
        sandbox.counters().packets.passed > before.packets.passed
    });
    traffic.drain(&mut sandbox);
}

/// A program that fails too often is evicted; every packet then gets an immediate answer.
#[test]
fn a_program_that_fails_too_often_is_evicted() {
    let mut config = hardy();
    config.back_off.failures = 3;
    let mut sandbox = sandbox(&pass(), config);
    let mut traffic = Traffic::new();
    for round in 1..=3 {
        until("the program runs", || {
            traffic.step(&mut sandbox).iter().any(|answer| answer.reason == Reason::Program)
        });
        signal(&sandbox, Signal::SIGKILL);
        until("it is seen", || {
            traffic.step(&mut sandbox);
            sandbox.counters().crashed_processes == round
        });
    }
    assert!(sandbox.status().is_evicted);
    traffic.drain(&mut sandbox);
    let before = sandbox.counters().packets.evicted;
    sandbox.submit(packet(0)).unwrap();
    let mut answers = Vec::new();
    sandbox.poll(&mut answers);
    assert_eq!(answers.len(), 1);
    assert_eq!(
        (answers[0].reason, sandbox.counters().packets.evicted),
        (Reason::Evicted, before + 1)
    );
}

/// Table changes are replayed to the next process.
#[test]
fn table_changes_are_replayed() {
    use p4_object::{Entry, Key};
    use sandbox::{Maps, Operation};
    let mut sandbox = sandbox(&counting(1), hardy());
    let key = |number: u32| Key::Bytes(number.to_ne_bytes().to_vec());
    let put = |number: u32| {
        Operation::Put(Entry { map: 1, key: key(number), value: vec![number as u8; 8] })
    };
    let batch: Vec<_> = (0..3000).map(put).collect();
    sandbox.apply(&batch).unwrap();
    // A part of an inserted entry, and a part of an array's initial entry.
    let part =
        |map, number| Operation::Write { map, key: key(number), at: 6, bytes: vec![0xaa, 0xbb] };
    sandbox.apply(&[Operation::Delete { map: 1, key: key(7) }, part(1, 8), part(0, 0)]).unwrap();
    signal(&sandbox, Signal::SIGKILL);
    until("another one is there", || {
        sandbox.poll(&mut Vec::new());
        sandbox.counters().restarts == 1
    });
    assert_eq!(sandbox.get(1, &key(2999)).unwrap(), Some(vec![2999_u32 as u8; 8]));
    assert_eq!(sandbox.get(1, &key(7)).unwrap(), None);
    assert_eq!(sandbox.get(1, &key(8)).unwrap(), Some(vec![8, 8, 8, 8, 8, 8, 0xaa, 0xbb]));
    assert_eq!(sandbox.get(0, &key(0)).unwrap(), Some(vec![0, 0, 0, 0, 0, 0, 0xaa, 0xbb]));
}

/// Deletions that made room for other entries, including those of initial entries, are replayed in
/// order.
#[test]
fn changes_of_a_full_table_are_replayed() {
    use sandbox::{Maps, Operation};
    let entries = [of_two(1, 1), of_two(2, 1), of_rules(1, 1), of_rules(2, 1)];
    let mut sandbox = sandbox(&filled(entries.to_vec()), hardy());
    let put = |entry: &p4_object::Entry| Operation::Put(entry.clone());
    let batch = [
        delete(&entries[0]),
        put(&of_two(3, 3)),
        delete(&entries[1]),
        put(&of_two(1, 3)),
        delete(&entries[2]),
        put(&of_rules(3, 3)),
        put(&of_rules(1, 3)),
    ];
    sandbox.apply(&batch).unwrap();
    let read = |sandbox: &mut Sandbox| {
        let mut two = sandbox.read(0, 0, 9).unwrap().entries;
        two.sort_by_key(|entry| format!("{:?}", entry.key));
        (two, sandbox.read(1, 0, 9).unwrap().entries)
    };
    let before = read(&mut sandbox);
    assert_eq!(before.0, [of_two(1, 3), of_two(3, 3)]);
    assert_eq!(before.1, [of_rules(2, 1), of_rules(3, 3), of_rules(1, 3)]);
    signal(&sandbox, Signal::SIGKILL);
    until("another one is there", || {
        sandbox.poll(&mut Vec::new());
        let status = sandbox.status();
        assert!(!status.is_evicted && sandbox.counters().crashed_processes <= 1, "{status:?}");
        sandbox.counters().restarts == 1
    });
    assert_eq!(read(&mut sandbox), before);
}
