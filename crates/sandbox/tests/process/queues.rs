//! Tests of queues that other threads use.

use std::sync::Arc;
use std::time::Duration;

use p4_object::Key;
use sandbox::Maps;
use sandbox::process::{Accusation, Arena, Config, Decision, Packet, PacketQueue, Reason, Sandbox};

use super::common::*;

const QUEUES: u32 = 3;

fn shared(object: &[u8], config: Config) -> Sandbox {
    let arena = Arc::new(Arena::new(FRAMES * (QUEUES + 1), FRAME).expect("memory"));
    let config = Config { queues: QUEUES, places: FRAMES, ..config };
    Sandbox::start(launcher(), config, arena, object).expect("it starts")
}

/// Submits a packet in each frame of a queue and takes the answers, in order.
fn round(queue: &mut PacketQueue) {
    for slot in queue.frames() {
        let packet = Packet { slot, start: 0, length: 60, port: 1, at: None };
        queue.submit(packet).expect("the frame is free");
    }
    queue.flush();
    let mut answers = Vec::new();
    until("answers", || {
        queue.collect().expect("the process is honest");
        queue.take_all(&mut answers);
        answers.len() == queue.frames().len()
    });
    assert!(answers.iter().map(|answer| answer.slot).eq(queue.frames()));
    assert!(answers.iter().all(|answer| answer.reason == Reason::Program));
}

#[test]
fn threads_share_a_program_by_queues_of_their_own() {
    const ROUNDS: u64 = 50;
    let mut sandbox = shared(&counting(1), patient());
    let shared = sandbox.shared().unwrap();
    assert!([0, QUEUES + 1, u32::MAX].into_iter().all(|number| shared.open(number).is_err()));
    let mut queues: Vec<_> = (1..=QUEUES).map(|number| shared.open(number).unwrap()).collect();
    assert!(
        queues.iter().all(|queue| !queue.frames().any(|slot| sandbox.frames().contains(&slot)))
    );
    std::thread::scope(|scope| {
        for queue in &mut queues {
            scope.spawn(move || (0..ROUNDS).for_each(|_| round(queue)));
        }
    });
    let foreign = Packet { slot: 0, start: 0, length: 60, port: 1, at: None };
    assert!(queues[0].submit(foreign).is_err(), "a frame of another queue");
    let count = sandbox.get(0, &Key::index(0)).unwrap().unwrap();
    let wanted = ROUNDS * u64::from(FRAMES * QUEUES);
    assert_eq!(u64::from_ne_bytes(count.try_into().unwrap()), wanted);
    let passed: Vec<u64> = queues.iter().map(|queue| queue.counters().passed).collect();
    assert_eq!(passed, [ROUNDS * u64::from(FRAMES); QUEUES as usize]);
}

#[test]
fn a_queue_outlives_its_process() {
    let deadline = Duration::from_millis(300);
    let mut sandbox = shared(&pass(), Config { deadline, is_background: true, ..patient() });
    let process = sandbox.status().process.unwrap().cast_signed();
    // SAFETY: sched_getscheduler(2) has no memory arguments.
    let policy = || unsafe { libc::sched_getscheduler(process) };
    assert_eq!(policy(), libc::SCHED_IDLE);
    let (before, shared) = (sandbox.epoch(), sandbox.shared().unwrap());
    let mut queue = shared.open(1).unwrap();
    round(&mut queue);
    // SAFETY: kill(2) has no memory arguments.
    unsafe { libc::kill(process, libc::SIGSTOP) };
    let first = queue.frames().start;
    for slot in first..first + 3 {
        queue.submit(Packet { slot, start: 0, length: 60, port: 1, at: None }).unwrap();
    }
    queue.flush();
    assert_eq!((queue.collect(), queue.flying()), (Ok(0), 3));
    until("the first deadline", || {
        sandbox.accuse(1, Accusation::Late);
        policy() == libc::SCHED_OTHER
    });
    assert_eq!(sandbox.epoch(), before, "a background process has two");
    until("the second deadline", || {
        sandbox.accuse(1, Accusation::Late);
        sandbox.epoch() != before
    });
    queue.disconnect(Reason::Deadline, Reason::Restarting);
    queue.submit(Packet { slot: first + 3, start: 0, length: 60, port: 1, at: None }).unwrap();
    let mut answers = Vec::new();
    queue.take_all(&mut answers);
    let reasons: Vec<Reason> = answers.iter().map(|answer| answer.reason).collect();
    let late = Reason::Deadline;
    assert_eq!(reasons, [late, late, late, Reason::Restarting]);
    assert!(answers.iter().all(|answer| answer.decision == Decision::Drop));
    until("the next process", || {
        sandbox.look_after();
        sandbox.shared().is_some()
    });
    let mut again = sandbox.shared().unwrap().open(1).unwrap();
    round(&mut again);
    assert_eq!(sandbox.counters().slow_processes, 1);
}
