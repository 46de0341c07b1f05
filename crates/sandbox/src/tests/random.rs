//! Random programs: native code and interpreter agree on registers, packets, maps and faults, and
//! write nothing else.

use proptest::prelude::*;

use super::guarded::Guarded;
use super::shapes::{shaped, wild};
use super::*;
use crate::maps::TernaryKey;

const LIMITS: Limits = Limits { instructions: 2000, memory: 1 << 20, code: 1 << 10 };

/// Packets: memory size, offset and length.
const PACKETS: [(usize, usize, usize); 4] = [(64, 0, 64), (100, 20, 60), (8, 8, 0), (40, 7, 9)];

/// All entries of all maps.
fn entries(instance: &mut Instance) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    for place in 0..instance.program().maps().len() {
        let map = instance.map_at(place).unwrap();
        all.extend(map.entries().map(|(key, value)| (key, value.to_vec())));
        all.extend(map.rules().map(|(_, value)| (Vec::new(), value.to_vec())));
    }
    all.sort();
    all
}

/// Runs a program on some packets with both engines; false if it cannot be loaded.
fn compare(object: &Object, page: &mut Guarded) -> bool {
    let load = |executor| Program::with_executor(object, &LIMITS, executor);
    let (native, plain) = (load(Executor::Native), load(Executor::Interpreter));
    let (Ok(native), Ok(plain)) = (&native, &plain) else {
        assert_eq!(native.is_ok(), plain.is_ok(), "{native:?}");
        return false;
    };
    let mut instances = [native, plain].map(|program| Instance::new(program).unwrap());
    for instance in &mut instances {
        let reading = p4_object::vm::Reading { value: u64::MAX - 6, at_ns: 3, until_ns: 9 };
        instance.publish("net.utilisation", Some(reading));
        instance.set_time(std::time::Duration::from_nanos(8));
        let words = vec![p4_object::WordRange { mask: 0xff, from: 0, to: 1 }];
        let key = TernaryKey { words, priority: 1 };
        if let Ok(mut ternary) = instance.map("ternary") {
            ternary.insert(&key, &[9; 24]).unwrap();
        }
    }
    for (at, (size, start, length)) in PACKETS.into_iter().enumerate() {
        let results = instances.each_mut().map(|instance| {
            let mut memory: Vec<u8> = (0..size).map(|byte| (byte as u8).wrapping_mul(3)).collect();
            let outcome = page.lend(&mut memory, at % 2 == 0, |memory| {
                let mut packet = PacketBuffer::new(memory, start, length).unwrap();
                (instance.run(&mut packet, 1), packet.start(), packet.len())
            });
            assert!(instance.is_intact(), "{:?}", object.code);
            let (metadata, stack) = instance.left();
            let left = (metadata, stack.to_vec());
            let told = (instance.digests(), instance.lost_digests());
            (outcome, memory, left, instance.printed(), entries(instance), told)
        });
        let text = || object.code.iter().map(|one| format!("{one}\n")).collect::<String>();
        assert_eq!(results[0], results[1], "packet {at}\n{}", text());
    }
    true
}

/// Pseudo-random numbers (xorshift64*).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Runs `KAIDO_PROGRAMS` random programs with the seed `KAIDO_SEED`.
fn many(default: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let programs = number("KAIDO_PROGRAMS").unwrap_or(default);
    let seed = number("KAIDO_SEED").unwrap_or(6);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let run: u64 = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    let mut page = Guarded::new();
                    let mut numbers = Numbers(seed << 8 | (thread + 1));
                    let mut run = 0;
                    for program in 0..programs / threads {
                        let length = 2 + numbers.next() % 30;
                        let words: Vec<u64> = (0..length).map(|_| numbers.next()).collect();
                        let make = if program % 2 == 0 { shaped } else { wild };
                        run += u64::from(compare(&make(&words), &mut page));
                    }
                    run
                })
            })
            .collect();
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    println!("{run} of {programs} programs ran, the others were refused");
    assert!(run > programs / 3, "{run} of {programs} programs were run");
}

#[test]
fn random_programs_do_the_same_and_no_more() {
    many(100_000);
}

/// Corrupted clang objects are rejected, or run like any other program.
#[test]
fn damaged_objects_do_the_same_and_no_more() {
    let mut page = Guarded::new();
    let mut numbers = Numbers(5);
    let (mut read, mut run) = (0, 0);
    for _ in 0..3000 {
        let mut bytes = include_bytes!("../../tests/objects/labels.o").to_vec();
        // Three quarters of the file are code.
        for _ in 0..1 + numbers.next() % 6 {
            let at = numbers.next() as usize % bytes.len();
            bytes[at] = numbers.next() as u8;
        }
        if let Ok(object) = p4_object::read(&bytes) {
            read += 1;
            run += u64::from(compare(&object, &mut page));
        }
    }
    assert!(read > 1000 && run > 300, "{read} were read, and {run} were run");
}

#[test]
fn all_shapes_are_programs() {
    let mut numbers = Numbers(1);
    for _ in 0..2000 {
        let words: Vec<u64> = (0..20).map(|_| numbers.next()).collect();
        assert_eq!(p4_object::verify(&shaped(&words)), Ok(()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Few programs, but a failing one is shrunk to a minimal one.
    #[test]
    fn programs_do_the_same_with_both_engines(words in prop::collection::vec(any::<u64>(), 2..40)) {
        prop_assert!(compare(&shaped(&words), &mut Guarded::new()));
    }
}
