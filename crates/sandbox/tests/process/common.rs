//! Test programs, sandboxes, and traffic through them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use p4_object::{Entry, Instruction, Key, Map, MapKind, Object, callee, opcode, wide};
use sandbox::Operation;
use sandbox::process::{Answer, Arena, Config, Decision, Launcher, Packet, Sandbox};

pub(crate) const FRAME: u32 = 2048;
pub(crate) const FRAMES: u32 = 256;
pub(crate) const EXIT: Instruction = one(opcode::EXIT, 0, 0, 0, 0);

pub(crate) const fn one(
    opcode: u8,
    destination: u8,
    source: u8,
    offset: i16,
    immediate: i32,
) -> Instruction {
    Instruction { opcode, destination, source, offset, immediate }
}

pub(crate) fn object(code: Vec<Instruction>, maps: Vec<Map>) -> Vec<u8> {
    let functions = [(0, "entry".to_owned())].into();
    p4_object::write(&Object { code, maps, functions, ..Object::default() }).expect("an object")
}

/// Passes all packets.
pub(crate) fn pass() -> Vec<u8> {
    object(vec![one(0xb7, 0, 0, 0, 1), EXIT], vec![])
}

/// Drops all packets.
pub(crate) fn drop_all() -> Vec<u8> {
    object(vec![one(0xb7, 0, 0, 0, 0), EXIT], vec![])
}

/// Redirects all packets to a port, and clones them to the next port.
pub(crate) fn redirect(port: i32) -> Vec<u8> {
    let code = vec![
        one(0x62, 2, 0, 12, port),
        one(0x62, 2, 0, 8, 3),
        one(0x72, 2, 0, 16, 1),
        one(0x62, 2, 0, 20, port + 1),
        one(0xb7, 0, 0, 0, 1),
        EXIT,
    ];
    object(code, vec![])
}

/// Never terminates.
pub(crate) fn endless() -> Vec<u8> {
    object(vec![one(opcode::JUMP, 0, 0, -1, 0), EXIT], vec![])
}

/// Aborts.
pub(crate) fn abort() -> Vec<u8> {
    object(vec![one(0x62, 2, 0, 8, 0), one(0xb7, 0, 0, 0, 1), EXIT], vec![])
}

/// Reads address 0.
pub(crate) fn wild() -> Vec<u8> {
    object(vec![one(0xb7, 1, 0, 0, 0), one(0x61, 0, 1, 0, 0), EXIT], vec![])
}

/// Counts packets in an array of one value and passes them; also has a hash map and a ternary map.
pub(crate) fn counting(version: i32) -> Vec<u8> {
    let map = |name: &str, kind, key_size| Map {
        name: name.to_owned(),
        kind,
        key_size,
        value_size: 8,
        max_entries: if kind == MapKind::Array { 1 } else { 4096 },
    };
    let code = vec![
        one(0x62, 10, 0, -4, 0),
        one(opcode::LOAD_WIDE, 1, wide::MAP, 0, 0),
        one(0, 0, 0, 0, 0),
        one(0xbf, 2, 10, 0, 0),
        one(0x07, 2, 0, 0, -4),
        one(opcode::CALL, 0, callee::HELPER, 0, 1),
        one(0x15, 0, 0, 3, 0),
        one(0x79, 1, 0, 0, 0),
        one(0x07, 1, 0, 0, 1),
        one(0x7b, 0, 1, 0, 0),
        one(0xb7, 3, 0, 0, version),
        one(0xb7, 0, 0, 0, 1),
        EXIT,
    ];
    let maps = vec![
        map("count", MapKind::Array, 4),
        map("table", MapKind::Hash, 4),
        map("rules", MapKind::Ternary, 8),
    ];
    object(code, maps)
}

/// Passes all packets; has a map of two entries and a ternary map of eight, with initial entries.
pub(crate) fn filled(entries: Vec<Entry>) -> Vec<u8> {
    let map = |name: &str, kind, key_size, max_entries| Map {
        name: name.to_owned(),
        kind,
        key_size,
        value_size: 8,
        max_entries,
    };
    let maps = vec![map("two", MapKind::Hash, 1, 2), map("rules", MapKind::Ternary, 8, 8)];
    let (code, functions) = (vec![one(0xb7, 0, 0, 0, 1), EXIT], [(0, "entry".to_owned())].into());
    let object = Object { code, functions, maps, entries, ..Object::default() };
    p4_object::write(&object).expect("an object")
}

/// An entry of the map of two.
pub(crate) fn of_two(key: u8, value: u8) -> Entry {
    Entry { map: 0, key: Key::Bytes(vec![key]), value: vec![value; 8] }
}

/// An entry of the ternary map, for exactly this word; all entries have the same priority.
pub(crate) fn of_rules(word: u64, value: u8) -> Entry {
    let word = p4_object::WordRange { mask: u64::MAX, from: word, to: word };
    Entry { map: 1, key: Key::Words(vec![word], 5), value: vec![value; 8] }
}

/// Operation that deletes an entry.
pub(crate) fn delete(entry: &Entry) -> Operation {
    Operation::Delete { map: entry.map, key: entry.key.clone() }
}

/// Redirects packets to the port that the VM publishes under a key. Drops them if the value is
/// stale or missing.
pub(crate) fn by_vm(key: &str) -> Vec<u8> {
    let get = |part| [one(0xb7, 1, 0, 0, 0), one(0xb7, 2, 0, 0, part)];
    let mut code = vec![one(0xbf, 6, 2, 0, 0)];
    code.extend(get(0));
    code.extend([one(opcode::CALL, 0, callee::HELPER, 0, 20), one(0x63, 6, 0, 12, 0)]);
    code.extend(get(1));
    code.extend([one(opcode::CALL, 0, callee::HELPER, 0, 20), one(0x62, 6, 0, 8, 3), EXIT]);
    let functions = [(0, "entry".to_owned())].into();
    let object = Object { code, functions, keys: vec![key.to_owned()], ..Object::default() };
    p4_object::write(&object).expect("an object")
}

/// Launcher for the `sandbox-process` binary.
pub(crate) fn launcher() -> Launcher {
    Launcher::of(env!("CARGO_BIN_EXE_sandbox-process").as_ref(), [""; 0]).expect("it is built")
}

/// Starts a sandbox with a program. Its timeouts are generous, because other tests run in parallel.
pub(crate) fn sandbox(object: &[u8], config: Config) -> Sandbox {
    let arena = Arc::new(Arena::new(FRAMES, FRAME).expect("memory"));
    Sandbox::start(launcher(), config, arena, object).expect("it starts")
}

pub(crate) fn patient() -> Config {
    Config { deadline: Duration::from_secs(5), ..Config::default() }
}

pub(crate) fn packet(slot: u32) -> Packet {
    Packet { slot, start: 256, length: 64, port: 3, at: None }
}

/// Decision for a packet now.
pub(crate) fn decision(sandbox: &mut Sandbox) -> Decision {
    answer(sandbox).decision
}

/// Answer to a packet now.
pub(crate) fn answer(sandbox: &mut Sandbox) -> Answer {
    sandbox.submit(packet(0)).expect("a free frame");
    sandbox.flush();
    let mut answers = Vec::new();
    until("an answer", || {
        sandbox.poll(&mut answers);
        !answers.is_empty()
    });
    answers.remove(0)
}

/// Traffic generator that keeps all frames in flight and checks that each packet gets one answer.
pub(crate) struct Traffic {
    flying: Vec<bool>,
    pub(crate) answered: u64,
    answers: Vec<Answer>,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        Self { flying: vec![false; FRAMES as usize], answered: 0, answers: Vec::new() }
    }

    /// Submits a packet in every free frame, and takes available answers.
    pub(crate) fn step(&mut self, sandbox: &mut Sandbox) -> &[Answer] {
        for slot in 0..FRAMES {
            if !self.flying[slot as usize] {
                sandbox.submit(packet(slot)).expect("a free frame");
                self.flying[slot as usize] = true;
            }
        }
        sandbox.flush();
        self.take(sandbox)
    }

    fn take(&mut self, sandbox: &mut Sandbox) -> &[Answer] {
        self.answers.clear();
        sandbox.poll(&mut self.answers);
        for answer in &self.answers {
            assert!(self.flying[answer.slot as usize], "two answers for {answer:?}");
            self.flying[answer.slot as usize] = false;
            self.answered += 1;
        }
        &self.answers
    }

    /// Waits for all outstanding answers.
    pub(crate) fn drain(&mut self, sandbox: &mut Sandbox) {
        sandbox.flush();
        until("all answers", || {
            self.take(sandbox);
            !self.flying.contains(&true)
        });
        assert_eq!(sandbox.flying(), 0);
        let counters = sandbox.counters();
        assert_eq!(counters.packets.submitted, self.answered);
        let outcomes = counters.packets.passed
            + counters.packets.dropped
            + counters.packets.redirected
            + counters.packets.policy;
        assert_eq!(outcomes, counters.packets.submitted, "{counters:?}");
    }
}

/// Waits for a condition, for at most ten seconds.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(10), "{what}: not in ten seconds");
        std::thread::yield_now();
    }
}
