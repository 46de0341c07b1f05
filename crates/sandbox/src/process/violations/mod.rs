//! Tests of processes that violate the protocol.

mod chance;

use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use p4_object::{Instruction, Object, opcode};

use super::channel::Channel;
use super::message::{Answer as Said, Request};
use super::*;
use crate::control::Maps;
use crate::program::Executor;
use chance::Chance;
use sandbox_queue::{Descriptor, Mapping, ProcessEnd, Reply, Rings};

const FRAMES: u32 = 64;

/// The program that the processes claim to have loaded.
fn program() -> Object {
    let map = p4_object::Map {
        name: "map".to_owned(),
        kind: p4_object::MapKind::Array,
        key_size: 4,
        value_size: 4,
        max_entries: 4,
    };
    let exit = Instruction { opcode: opcode::EXIT, ..Instruction::default() };
    Object {
        code: vec![exit],
        functions: [(0, "entry".to_owned())].into(),
        maps: vec![map],
        digests: vec![p4_object::Digest { name: "digest".to_owned(), size: 4 }],
        ..Object::default()
    }
}

/// Child process of these tests: claims to have loaded the program, then violates the protocol.
#[test]
#[ignore = "what other tests start"]
fn violator() {
    let Ok(violation) = std::env::var("KAIDO_VIOLATION") else { return };
    // SAFETY: the control socket, which has no other user here.
    let mut channel = Channel::new(unsafe { UnixStream::from_raw_fd(0) });
    let (hello, [memory, _frames]) = channel.receive_with().unwrap();
    let Some(Request::Hello(hello)) = Request::decode(&hello) else { panic!("no greeting") };
    channel.send(&Said::Isolated(Isolation::REQUIRED).encode()).unwrap();
    channel.receive().unwrap();
    let Object { maps, keys, digests, .. } = program();
    let ready = Said::Ready { maps, keys, digests, executor: Executor::Native };
    channel.send(&ready.encode()).unwrap();
    match violation.as_str() {
        "garbage" => garbage(&Mapping::new(&memory, Rings::bytes(hello.places, 1)).unwrap()),
        "control" => {
            channel.receive().unwrap();
            channel.send(&[0xff; 99]).unwrap();
        }
        "silence" => drop(channel.receive()),
        "chance" => {
            let seed = std::env::var("KAIDO_SEED").unwrap().parse().unwrap();
            let rings = Rings::new(&memory, hello.places, 1).unwrap();
            Chance::new(seed).violate(&mut ProcessEnd::new(rings), &mut channel);
        }
        violation => {
            answer(violation, ProcessEnd::new(Rings::new(&memory, hello.places, 1).unwrap()))
        }
    }
    // Wait to be killed.
    loop {
        std::thread::park();
    }
}

fn answer(violation: &str, mut rings: ProcessEnd) {
    loop {
        while rings.waiting(0) == 0 {
            std::thread::yield_now();
        }
        let Descriptor { slot, generation, start, length, .. } = rings.take(0);
        let honest = Reply {
            slot,
            generation,
            start,
            length,
            verdict: 2,
            port: 0,
            has_clone: 0,
            clone_port: 0,
        };
        let is_now = slot == 5;
        match violation {
            "digest" if is_now => rings.put_digest(1, &[0; 4]),
            "digest length" if is_now => rings.put_digest(0, &[0; 5]),
            "digests" if is_now => rings.claim_digests(1000),
            _ => rings.put_digest(0, &[1; 4]),
        }
        rings.put(
            0,
            match violation {
                _ if !is_now => honest,
                "slot" => Reply { slot: slot + 1, ..honest },
                "no slot" => Reply { slot: u32::MAX, ..honest },
                "generation" => Reply { generation: generation.wrapping_sub(1), ..honest },
                "twice" => Reply { slot: slot - 1, ..honest },
                "length" => Reply { length: 2048, start: 1, ..honest },
                "overflow" => Reply { length: u32::MAX, start: 2, ..honest },
                "verdict" => Reply { verdict: 99, ..honest },
                "clone" => Reply { has_clone: 7, ..honest },
                _ => honest,
            },
        );
        if is_now && violation == "more" {
            (0..FRAMES).for_each(|_| rings.put(0, honest));
        }
        rings.show(0);
    }
}

/// Overwrites the shared memory continuously.
fn garbage(memory: &Mapping) {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    loop {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let at = (random >> 32) as usize % (memory.size() / 8) * 8;
        let at = if random & 1 == 0 { 64 } else { at };
        // SAFETY: the word is aligned and in the mapping; the other side uses atomics.
        let word: &std::sync::atomic::AtomicU64 = unsafe { memory.at(at, 8).cast().as_ref() };
        let number = if random & 6 == 0 { random & 0xff } else { random };
        word.store(number, std::sync::atomic::Ordering::Relaxed);
    }
}

fn sandbox(violation: &str, seed: u64, deadline: Duration) -> Sandbox {
    let this = std::env::current_exe().unwrap();
    // Keep libtest's output away from the doorbell.
    let script = format!(
        "KAIDO_VIOLATION='{violation}' KAIDO_SEED={seed} exec '{}' --exact process::violations::violator --ignored >/dev/null",
        this.display()
    );
    let launcher =
        Launcher::of(std::path::Path::new("/bin/sh"), ["-c", &script]).expect("there is a shell");
    let arena = Arc::new(Arena::new(FRAMES, 2048).unwrap());
    let config = Config { deadline, ..Config::default() };
    Sandbox::start(launcher, config, arena, &p4_object::write(&program()).unwrap()).unwrap()
}

/// Submits a packet in each frame, and waits for one answer each.
fn round(sandbox: &mut Sandbox) -> Vec<Answer> {
    for slot in 0..FRAMES {
        sandbox.submit(Packet { slot, start: 128, length: 64, port: 1, at: None }).unwrap();
    }
    sandbox.flush();
    let (begin, mut answers) = (Instant::now(), Vec::new());
    while answers.len() < FRAMES as usize {
        sandbox.poll(&mut answers);
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", sandbox.counters());
        std::thread::yield_now();
    }
    let slots: Vec<u32> = answers.iter().map(|answer| answer.slot).collect();
    assert_eq!(slots, (0..FRAMES).collect::<Vec<_>>(), "each packet once, in order");
    answers
}

#[test]
fn violators_are_evicted_and_packets_answered_once() {
    let violations = [
        ("slot", "another frame"),
        ("no slot", "another frame"),
        ("generation", "an older packet"),
        ("twice", "another frame"),
        ("length", "not within its frame"),
        ("overflow", "not within its frame"),
        ("verdict", "an unknown verdict"),
        ("clone", "an unknown verdict"),
    ];
    for (violation, found) in violations {
        let mut sandbox = sandbox(violation, 0, Duration::from_secs(10));
        let answers = round(&mut sandbox);
        assert!(answers[..5].iter().all(|answer| answer.reason == Reason::Program), "{violation}");
        assert!(
            answers[5..].iter().all(|answer| answer.reason == Reason::ProtocolViolation),
            "{violation}"
        );
        assert!(answers[5..].iter().all(|answer| answer.decision == Decision::Drop), "{violation}");
        let (status, counters) = (sandbox.status(), sandbox.counters());
        assert!(status.is_evicted && status.process.is_none(), "{violation}");
        assert!(status.last_failure.is_some_and(|why| why.contains(found)), "{violation}");
        assert_eq!(
            (counters.violating_processes, counters.packets.violated, counters.packets.passed),
            (1, 59, 5),
            "{violation}"
        );
    }
}

/// Digest violations end the process as well; verdicts received before stay valid.
#[test]
fn violations_by_digests_evict() {
    for violation in ["digest", "digest length", "digests"] {
        let mut sandbox = sandbox(violation, 0, Duration::from_secs(10));
        round(&mut sandbox);
        let (status, counters) = (sandbox.status(), sandbox.counters());
        assert!(status.is_evicted, "{violation}: {status:?}");
        assert!(
            status.last_failure.is_some_and(|why| why.contains("undeclared digest")),
            "{violation}"
        );
        assert_eq!(counters.violating_processes, 1, "{violation}");
        let digests = sandbox.digests();
        assert!(digests.len() <= FRAMES as usize, "{violation}: {digests:?}");
        assert!(digests.iter().all(|one| (one.id, &*one.data) == (0, &[1; 4][..])), "{violation}");
    }
    // A well-behaved process continues.
    let mut honest = sandbox("nothing", 0, Duration::from_secs(10));
    round(&mut honest);
    assert_eq!(
        (honest.digests().len(), honest.counters().violating_processes),
        (FRAMES as usize, 0)
    );
}

#[test]
fn too_many_verdicts_are_a_violation() {
    let mut sandbox = sandbox("more", 0, Duration::from_secs(10));
    let answers = round(&mut sandbox);
    assert_eq!(sandbox.counters().violating_processes, 1, "{answers:?}");
    assert!(sandbox.status().is_evicted);
}

#[test]
fn garbage_in_the_rings_evicts() {
    for _ in 0..5 {
        let mut sandbox = sandbox("garbage", 0, Duration::from_secs(1));
        // The first polls may see no verdicts.
        for _ in 0..9 {
            round(&mut sandbox);
        }
        let counters = sandbox.counters();
        assert_eq!(counters.packets.submitted, 9 * u64::from(FRAMES));
        let outcomes = counters.packets.passed
            + counters.packets.dropped
            + counters.packets.redirected
            + counters.packets.policy;
        assert_eq!(outcomes, counters.packets.submitted);
        assert!(counters.violating_processes + counters.slow_processes >= 1, "{counters:?}");
    }
}

#[test]
fn nonsense_on_the_control_socket_evicts() {
    let mut violator = sandbox("control", 0, Duration::from_secs(10));
    assert!(violator.get(0, &p4_object::Key::index(0)).is_err());
    assert!(violator.status().is_evicted);
    assert_eq!(violator.counters().violating_processes, 1);
    round(&mut violator);
}

#[test]
fn a_silent_process_is_replaced() {
    let mut violator = sandbox("silence", 0, Duration::from_millis(50));
    let answers = round(&mut violator);
    assert!(answers.iter().all(|answer| answer.reason == Reason::Deadline), "{answers:?}");
    assert_eq!(violator.counters().slow_processes, 1);
    assert!(!violator.status().is_evicted);
}
