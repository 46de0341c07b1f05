//! Programs, sandboxes, and traffic through them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use p4::object::{Entry, Instruction, Key, Map, MapKind, Object, callee, opcode, wide};
use sandbox::Operation;
use sandbox::process::{Answer, Arena, Config, Launcher, Packet, Sandbox};

pub(crate) const FRAME: u32 = 2048;
pub(crate) const FRAMES: u32 = 256;
const EXIT: Instruction = one(opcode::EXIT, 0, 0, 0, 0);

pub(crate) const fn one(
    opcode: u8,
    destination: u8,
    source: u8,
    offset: i16,
    immediate: i32,
) -> Instruction {
    Instruction { opcode, destination, source, offset, immediate }
}

fn object(code: Vec<Instruction>, maps: Vec<Map>) -> Vec<u8> {
    let functions = [(0, "entry".to_owned())].into();
    p4::object::write(&Object { code, maps, functions, ..Object::default() }).expect("an object")
}

/// Lets everything pass.
pub(crate) fn pass() -> Vec<u8> {
    object(vec![one(0xb7, 0, 0, 0, 1), EXIT], vec![])
}

/// Drops everything.
pub(crate) fn drop_all() -> Vec<u8> {
    object(vec![one(0xb7, 0, 0, 0, 0), EXIT], vec![])
}

/// Sends everything to a port, and a copy to the next.
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

/// Runs without end.
pub(crate) fn endless() -> Vec<u8> {
    object(vec![one(opcode::JUMP, 0, 0, -1, 0), EXIT], vec![])
}

/// Says that it cannot go on.
pub(crate) fn abort() -> Vec<u8> {
    object(vec![one(0x62, 2, 0, 8, 0), one(0xb7, 0, 0, 0, 1), EXIT], vec![])
}

/// Reads at address 0.
pub(crate) fn wild() -> Vec<u8> {
    object(vec![one(0xb7, 1, 0, 0, 0), one(0x61, 0, 1, 0, 0), EXIT], vec![])
}

/// Counts in an array of one number, and passes; a hash and a ternary map beside it.
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

/// Lets everything pass, and has a map of two places and a ternary one of eight, with entries.
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
    p4::object::write(&object).expect("an object")
}

/// An entry of the first of these maps.
pub(crate) fn of_two(key: u8, value: u8) -> Entry {
    Entry { map: 0, key: Key::Bytes(vec![key]), value: vec![value; 8] }
}

/// An entry of the second, for this word alone, and of one priority with all others.
pub(crate) fn of_rules(word: u64, value: u8) -> Entry {
    let word = p4::object::WordRange { mask: u64::MAX, from: word, to: word };
    Entry { map: 1, key: Key::Words(vec![word], 5), value: vec![value; 8] }
}

/// An entry goes.
pub(crate) fn delete(entry: &Entry) -> Operation {
    Operation::Delete { map: entry.map, key: entry.key.clone() }
}

/// Sends packets to the port that is the value of a key of the VM's, if that is fresh, and drops them if
/// it is not.
pub(crate) fn by_vm(key: &str) -> Vec<u8> {
    let get = |part| [one(0xb7, 1, 0, 0, 0), one(0xb7, 2, 0, 0, part)];
    let mut code = vec![one(0xbf, 6, 2, 0, 0)];
    code.extend(get(0));
    code.extend([one(opcode::CALL, 0, callee::HELPER, 0, 20), one(0x63, 6, 0, 12, 0)]);
    code.extend(get(1));
    code.extend([one(opcode::CALL, 0, callee::HELPER, 0, 20), one(0x62, 6, 0, 8, 3), EXIT]);
    let functions = [(0, "entry".to_owned())].into();
    let object = Object { code, functions, keys: vec![key.to_owned()], ..Object::default() };
    p4::object::write(&object).expect("an object")
}

/// The program that tenants' processes are.
pub(crate) fn launcher() -> Launcher {
    Launcher::of(env!("CARGO_BIN_EXE_kaido-sandbox").as_ref(), [""; 0]).expect("it is built")
}

/// A sandbox with a program. Patient: other tests run beside it.
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

/// Gives packets to a sandbox without a pause, and looks that each gets one answer.
pub(crate) struct Traffic {
    flying: Vec<bool>,
    pub(crate) answered: u64,
    answers: Vec<Answer>,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        Self { flying: vec![false; FRAMES as usize], answered: 0, answers: Vec::new() }
    }

    /// Submits what can be, and takes the answers that there are.
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

    /// Takes all answers that are still to come.
    pub(crate) fn drain(&mut self, sandbox: &mut Sandbox) {
        sandbox.flush();
        until("all answers", || {
            self.take(sandbox);
            !self.flying.contains(&true)
        });
        assert_eq!(sandbox.flying(), 0);
        let counters = sandbox.counters();
        assert_eq!(counters.submitted, self.answered);
        let outcomes = counters.passed + counters.dropped + counters.redirected + counters.policy;
        assert_eq!(outcomes, counters.submitted, "{counters:?}");
    }
}

/// Waits for something, ten seconds at most.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(10), "{what}: not in ten seconds");
        std::thread::yield_now();
    }
}
