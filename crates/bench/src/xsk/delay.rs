//! A program that takes a given time for each packet, as in figures 11 to 13 of TransP4.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use p4_object::Object;
use p4info::v1::{P4Info, PkgInfo};
use sandbox::{Instance, Limits, PacketBuffer};

use super::Program;

/// Number of rounds in the object (programs/delay.c).
const MARK: i32 = 0x5eed_1234;
/// Rounds of a calibration: about 20 us.
const ROUNDS: u32 = 100;
/// Packets of a calibration.
const PACKETS: u32 = 2000;

/// The program with a number of rounds of work.
fn object(rounds: u32) -> Result<Object> {
    let mut object = p4_object::read(include_bytes!(concat!(env!("OUT_DIR"), "/delay.o")))?;
    let mut places = object.code.iter_mut().filter(|one| one.immediate == MARK);
    let (Some(place), None) = (places.next(), places.next()) else { bail!("no rounds") };
    place.immediate = rounds.try_into()?;
    // It has no tables that control planes know.
    let pkg_info = Some(PkgInfo { arch: "ubpf".to_owned(), ..PkgInfo::default() });
    object.info = p4info::binary(&P4Info { pkg_info, ..P4Info::default() });
    Ok(object)
}

/// Measures the time of a round.
pub(super) fn calibrate() -> Result<Duration> {
    let time = |rounds| {
        let program = sandbox::Program::load(&object(rounds)?, &Limits::default())?;
        let mut instance = Instance::new(&program)?;
        let mut memory = [0; 2048];
        let begin = Instant::now();
        for _ in 0..PACKETS {
            let mut buffer = PacketBuffer::new(&mut memory, 256, 60).context("it fits")?;
            instance.run(&mut buffer, 1);
        }
        anyhow::Ok(begin.elapsed() / PACKETS)
    };
    // The first packets fill caches.
    time(0)?;
    Ok(time(ROUNDS)?.saturating_sub(time(0)?) / ROUNDS)
}

/// Returns a program that takes `delay` for each packet, beyond the time of an empty one.
pub(super) fn program(delay: Duration, round: Duration) -> Result<Program> {
    let rounds = delay.as_nanos().div_ceil(round.as_nanos().max(1));
    let content = p4_object::write(&object(u32::try_from(rounds)?)?)?;
    Ok(Program { file: "delay.o", content: Cow::Owned(content) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_delay_is_within_the_limit_of_instructions() {
        let round = calibrate().unwrap();
        assert!(round > Duration::ZERO);
        let program = program(Duration::from_micros(100), round).unwrap();
        let object = p4_object::read(&program.content).unwrap();
        let program = sandbox::Program::load(&object, &Limits::default()).unwrap();
        let mut instance = Instance::new(&program).unwrap();
        let mut memory = [0; 2048];
        let mut buffer = PacketBuffer::new(&mut memory, 256, 60).unwrap();
        let outcome = instance.run(&mut buffer, 1);
        assert_eq!(outcome.verdict, sandbox::Verdict::Pass);
    }
}
