//! Randomised protocol violations: for any behavior of the process, each packet gets exactly one
//! answer, which is within its frame. `KAIDO_VIOLATORS` sets the number of processes, `KAIDO_SEED`
//! reproduces one.

use p4_object::{Entry, Key, WordRange};
use serde_bytes::ByteBuf;

use super::*;
use crate::control::{ControlError, Operation, Piece};
use crate::maps::MapError;
use crate::tests::random::Numbers;

/// Deterministic random number generator.
pub(super) struct Chance(Numbers);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        // A xorshift state of 0 would stay 0.
        Self(Numbers(seed << 8 | 1))
    }

    fn bits(&mut self) -> u64 {
        self.0.next()
    }

    /// A number below the bound.
    fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    /// A number that is off by one, at a boundary, or random.
    fn near(&mut self, number: u32) -> u32 {
        match self.below(6) {
            0 => number.wrapping_add(1),
            1 => number.wrapping_sub(1),
            2 => 0,
            3 => u32::MAX,
            4 => 1 << self.below(32),
            _ => self.bits() as u32,
        }
    }

    /// Answers packets and requests until it is killed.
    pub(super) fn violate(&mut self, rings: &mut ProcessEnd, channel: &mut Channel) {
        // Some processes rarely violate the protocol, others always do.
        let honesty = 1 << self.below(12);
        loop {
            if rings.has_message() {
                rings.took_message();
                let Ok(request) = channel.receive() else { return };
                let answer = self.answer(&request);
                if channel.send(&answer).is_err() {
                    return;
                }
            }
            let batch = rings.waiting(0).min(FRAMES);
            for _ in 0..batch {
                let packet = rings.take(0);
                self.verdict(packet, honesty, rings);
            }
            if batch == 0 {
                std::thread::yield_now();
            } else if !self.one_in(honesty * 4) {
                rings.show(0);
            }
        }
    }

    fn verdict(&mut self, packet: Descriptor, honesty: usize, rings: &mut ProcessEnd) {
        let Descriptor { slot, generation, start, length, .. } = packet;
        let honest = Reply {
            slot,
            generation,
            start,
            length,
            verdict: [0, 1, 2, 3, 17, 18][self.below(6)],
            port: self.bits() as u32,
            has_clone: self.below(2) as u32,
            clone_port: self.bits() as u32,
        };
        if !self.one_in(honesty) {
            rings.put_digest(0, &[1; 4]);
            return rings.put(0, honest);
        }
        let mut reply = honest;
        match self.below(9) {
            0 => reply.slot = self.near(slot),
            1 => reply.generation = self.near(generation),
            2 => reply.start = self.near(start),
            3 => reply.length = self.near(length),
            4 => reply.verdict = self.near(reply.verdict),
            5 => reply.has_clone = self.near(reply.has_clone),
            6 => {
                let (id, bytes) = (self.near(0), self.below(257));
                rings.put_digest(id, &vec![3; bytes]);
            }
            7 => rings.claim_digests(self.near(0)),
            _ => (0..self.below(200)).for_each(|_| rings.put(0, honest)),
        }
        if !self.one_in(9) {
            rings.put(0, reply);
        }
    }

    /// A response to the request, sometimes with modified bytes or length.
    fn answer(&mut self, request: &[u8]) -> Vec<u8> {
        let word = WordRange { mask: 7, from: 1, to: 2 };
        let entry = Entry { map: 0, key: Key::Words(vec![word], 9), value: vec![1; 4] };
        let entry = match self.one_in(2) {
            true => entry,
            false => Entry { key: Key::Bytes(vec![0; 4]), ..entry },
        };
        let right = match Request::decode(request) {
            Some(Request::Apply(_)) => Said::Done,
            Some(Request::Read { .. }) => Said::Piece(Piece { entries: vec![entry], next: None }),
            Some(Request::Get { keys, .. }) => {
                Said::Values(vec![Some(ByteBuf::from(vec![7; 4])); keys.len()])
            }
            _ => Said::Failed("no".to_owned()),
        };
        let any = [
            right.clone(),
            Said::Done,
            Said::Values(vec![None]),
            Said::Values(vec![None; 2]),
            Said::Piece(Piece { entries: Vec::new(), next: Some(0) }),
            Said::Refused { at: self.near(0), why: MapError::KeySize { given: 1, wanted: 2 } },
            Said::Failed("no".to_owned()),
        ];
        let said = if self.one_in(3) { any[self.below(any.len())].clone() } else { right };
        let mut bytes = said.encode();
        if self.one_in(3) {
            for _ in 0..=self.below(2) {
                let at = self.below(bytes.len());
                bytes[at] = self.near(u32::from(bytes[at])) as u8;
            }
            let end = if self.one_in(4) { self.below(bytes.len()) } else { bytes.len() };
            bytes.truncate(end);
        }
        bytes
    }
}

/// Sends table requests like a control plane.
fn ask(sandbox: &mut Sandbox, chance: &mut Chance) -> Result<(), ControlError> {
    let key = Key::index(0);
    match chance.below(3) {
        0 => {
            let keys = vec![key; 1 + chance.below(2)];
            let values = sandbox.get_all(0, &keys)?;
            assert_eq!(values.len(), keys.len());
            assert!(values.iter().flatten().all(|value| value.len() == 4));
        }
        1 => {
            let piece = sandbox.read(0, 0, 4)?;
            let fits = |entry: &Entry| entry.map == 0 && entry.value.len() == 4;
            assert!(piece.entries.len() <= 4 && piece.entries.iter().all(fits), "{piece:?}");
        }
        _ => {
            let entry = Entry { map: 0, key, value: vec![1; 4] };
            sandbox.apply(&[Operation::Put(entry)])?;
        }
    }
    Ok(())
}

#[test]
fn random_violations_are_detected_or_harmless() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let violators = number("KAIDO_VIOLATORS").unwrap_or(300);
    let seeds = number("KAIDO_SEED").map_or(0..violators, |seed| seed..seed + 1);
    let (count, mut violations, mut honest) = (seeds.end - seeds.start, 0, 0);
    for seed in seeds {
        let mut sandbox = sandbox("chance", seed, Duration::from_millis(50));
        let mut chance = Chance::new(!seed);
        let mut asked = Vec::new();
        for _ in 0..8 {
            for answer in round(&mut sandbox) {
                let end = answer.start.checked_add(answer.length);
                assert!(end.is_some_and(|end| end <= 2048), "seed {seed}: {answer:?}");
                let is_policy = answer.reason != Reason::Program;
                assert!(!is_policy || answer.decision == Decision::Drop, "seed {seed}: {answer:?}");
            }
            asked.push(ask(&mut sandbox, &mut chance).is_ok());
            let digests = sandbox.digests();
            let known = digests.iter().all(|one| one.id == 0 && one.data.len() == 4);
            assert!(known, "seed {seed}: {digests:?}");
            if sandbox.status().process.is_none() {
                break;
            }
        }
        let counters = sandbox.counters();
        let outcomes = counters.packets.passed
            + counters.packets.dropped
            + counters.packets.redirected
            + counters.packets.policy;
        assert_eq!(outcomes, counters.packets.submitted, "seed {seed}: {counters:?}");
        violations += counters.violating_processes;
        honest += counters.packets.passed;
    }
    println!("{count} violators: {violations} detected, {honest} packets passed");
    assert!(
        count < 20 || (violations > count / 2 && honest > count),
        "{violations} violations of {count}"
    );
}
