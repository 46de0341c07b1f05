//! Random packets: compiled code and the interpreter give the same results.

use p4::interpret::{self, Outcome};
use p4::stf::{Runs, Said};

use super::cells::Cells;
use super::*;

/// Total number of packets for all programs; `KAIDO_PACKETS` overrides it.
const PACKETS: usize = 100_000;

/// Knuth's linear congruential generator: every run has the same packets.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }

    /// A packet like one of these with a few changes, or sometimes an entirely random one.
    fn packet(&mut self, like: &[Vec<u8>]) -> Vec<u8> {
        if self.below(16) == 0 {
            let length = self.below(120);
            return (0..length).map(|_| self.below(256) as u8).collect();
        }
        let mut packet = like[self.below(like.len())].clone();
        for _ in 0..self.below(5) {
            let at = self.below(packet.len());
            match self.below(8) {
                0 => packet.truncate(at),
                1 => packet.insert(at.min(packet.len()), self.below(256) as u8),
                2 => packet.extend((0..self.below(40)).map(|byte| byte as u8)),
                // Small numbers are plausible lengths and counts.
                3 => {
                    packet.iter_mut().skip(at).take(1).for_each(|byte| *byte = self.below(8) as u8)
                }
                4 => {
                    packet.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << self.below(8))
                }
                5 => {
                    let other = &like[self.below(like.len())];
                    if let Some(byte) = other.get(at) {
                        packet.iter_mut().skip(at).take(1).for_each(|one| *one = *byte);
                    }
                }
                _ => packet
                    .iter_mut()
                    .skip(at)
                    .take(1)
                    .for_each(|byte| *byte = self.below(256) as u8),
            }
        }
        packet
    }
}

impl Random {
    /// Publishes a new value for one of the keys, or withdraws it.
    fn publish(
        &mut self,
        keys: &[String],
        plain: &mut interpret::Machine<'_>,
        machine: &mut Machine<'_>,
    ) {
        if keys.is_empty() {
            return;
        }
        let bits = self.below(65) as u32;
        let value = (self.0 ^ self.0 << 31).checked_shr(bits).unwrap_or(0);
        let said = Said { value, age_ns: self.below(1 << 20) as u64, is_stale: self.below(3) == 0 };
        let said = (self.below(8) > 0).then_some(said);
        let key = &keys[self.below(keys.len())];
        Runs::publish(plain, key, said).unwrap();
        machine.publish(key, said).unwrap();
    }
}

/// Runs a program's test and random packets on both machines. Returns the first difference.
fn compare(name: &str, program: &str, test: &str, count: usize) -> Result<(), String> {
    let checked = p4::check(name, program, &Nothing);
    let compiled = compile(&checked.program, &checked.sources)
        .map_err(|why| why.render(&checked.sources, false))?;
    let mut plain = interpret::Machine::new(&checked.program).unwrap();
    let mut machine = Machine::new(&compiled, interpret::elaborate(&checked.program).unwrap());
    let (packets, lines) = stf::parts(stf::parse(test).unwrap());
    assert_eq!(stf::run(&checked.program, &mut plain, &lines), [], "{name}");
    assert_eq!(stf::run(&checked.program, &mut machine, &lines), [], "{name}");
    let cells = Cells::new(&checked.program, &lines);
    let mut random = Random(name.bytes().map(u64::from).sum());
    for at in 0..count {
        let packet = random.packet(&packets);
        let port = [0, 1, 2, 3, 7][random.below(5)];
        let now = (at as u64) * 1_000_003;
        (plain.now, machine.now) = (now, now);
        if random.below(4) == 0 {
            random.publish(&compiled.object.keys, &mut plain, &mut machine);
        }
        if random.below(8) == 0 {
            cells.set_meter(&mut random, &mut plain, &mut machine);
        }
        if let Some(why) = difference(&mut plain, &mut machine, port, &packet) {
            return Err(format!("packet {at}: {why}"));
        }
        let (told, found) = (Runs::digests(&mut plain), machine.digests());
        if told != found {
            return Err(format!("packet {at}: digests {told:02x?} expected, {found:02x?} found"));
        }
    }
    cells.compare(&mut plain, &mut machine)
}

/// Runs a packet on both machines. Returns a description of the difference, if any.
pub(super) fn difference(
    plain: &mut interpret::Machine<'_>,
    machine: &mut Machine<'_>,
    port: u32,
    packet: &[u8],
) -> Option<String> {
    let came = Outcome { verdict: interpret::Verdict::Abort, clone: None, packet: packet.to_vec() };
    // A packet that exceeds the limits in a control aborts as well.
    let expected = Runs::run(plain, port, packet).unwrap_or(came);
    let running = std::panic::AssertUnwindSafe(|| machine.run(port, packet));
    let found = std::panic::catch_unwind(running)
        .map_err(|why| format!("{:?}", why.downcast_ref::<String>()));
    if found.as_ref().ok() == Some(&Ok(expected.clone())) {
        return None;
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let shown = |one: &Outcome| format!("{:?} {:?} {}", one.verdict, one.clone, hex(&one.packet));
    let found = match found {
        Ok(Ok(found)) => shown(&found),
        other => format!("{other:?}"),
    };
    let (packet, expected) = (hex(packet), shown(&expected));
    Some(format!("port {port}: {packet}\n  expected {expected}\n  found    {found}"))
}

#[test]
fn random_packets_make_no_difference() {
    let only = std::env::var("P").ok();
    let packets = std::env::var("KAIDO_PACKETS").map_or(PACKETS, |count| count.parse().unwrap());
    let programs = programs();
    let each = packets.div_ceil(programs.len());
    let mut wrong = Vec::new();
    for (name, program, test) in &programs {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        if let Err(why) = compare(name, program, test, each) {
            wrong.push(format!("{name}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
