//! Tests of programs that exceed limits, and of invalid objects.

use std::sync::Arc;

use sandbox::FaultKind;
use sandbox::process::{Arena, Config, Decision, Policy, Reason, Sandbox, StartError};

use super::common::*;

fn answer_of(object: &[u8], policy: Policy) -> (Decision, Reason, sandbox::process::Counters) {
    let mut sandbox = sandbox(object, Config { policy, ..patient() });
    let answer = answer(&mut sandbox);
    (answer.decision, answer.reason, sandbox.counters())
}

#[test]
fn the_policy_answers_for_programs_that_break_limits() {
    let (closed, reason, counters) = answer_of(&endless(), Policy::Closed);
    assert_eq!((closed, reason), (Decision::Drop, Reason::Fault(FaultKind::Meter)));
    assert_eq!((counters.packets.policy, counters.packets.fault(FaultKind::Meter)), (1, 1));
    let (open, reason, counters) = answer_of(&wild(), Policy::Open);
    assert_eq!((open, reason), (Decision::Pass, Reason::Fault(FaultKind::Bounds)));
    assert_eq!((counters.packets.policy, counters.packets.fault(FaultKind::Bounds)), (1, 1));
    let (closed, reason, counters) = answer_of(&abort(), Policy::Closed);
    assert_eq!((closed, reason), (Decision::Drop, Reason::Aborted));
    assert_eq!(
        (counters.packets.policy, counters.packets.aborted, counters.packets.passed),
        (1, 1, 0)
    );
}

#[test]
fn an_invalid_program_is_refused_with_a_reason() {
    let arena = Arc::new(Arena::new(FRAMES, FRAME).unwrap());
    let started = Sandbox::start(launcher(), patient(), arena.clone(), b"no object");
    assert!(matches!(&started, Err(StartError::Refused(why)) if !why.is_empty()), "{started:?}");
    let of = |program: &str| sandbox::process::Launcher::of(program.as_ref(), [""; 0]);
    assert!(of("/nowhere").is_err());
    let started = Sandbox::start(of("/etc/hostname").unwrap(), patient(), arena.clone(), &pass());
    assert!(matches!(started, Err(StartError::Spawn(_))), "{started:?}");
    let other = of("/bin/false").unwrap();
    let started = Sandbox::start(other, patient(), arena, &pass());
    assert!(matches!(started, Err(StartError::Ended(_) | StartError::NotReady(_))), "{started:?}");
}

/// Scheduling policy of a process (`SCHED_OTHER`, `SCHED_IDLE`), from proc(5).
fn scheduled(process: u32) -> i32 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it is there");
    let (_, behind) = text.rsplit_once(") ").expect("a name in brackets");
    behind.split(' ').nth(38).and_then(|one| one.parse().ok()).expect("a number")
}

#[test]
fn an_endless_program_gets_the_lowest_priority() {
    let mut sandbox = sandbox(&endless(), patient());
    let process = sandbox.status().process.expect("it runs");
    let before = scheduled(process);
    for sent in 0..4 {
        sandbox.submit(packet(sent % FRAMES)).expect("a free frame");
        sandbox.flush();
        let mut answers = Vec::new();
        until("an answer", || {
            sandbox.poll(&mut answers);
            !answers.is_empty()
        });
    }
    assert_eq!(sandbox.status().process, Some(process));
    assert_eq!((before, scheduled(process)), (libc::SCHED_OTHER, libc::SCHED_IDLE));
}
