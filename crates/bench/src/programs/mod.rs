//! Cost of tenants' programs: compiled P4 compared with hand-written C, on the same engine and the
//! same packets.

mod processes;
mod program;

use std::time::Duration;

use anyhow::Result;

use crate::row::{Better, Row};
use crate::{Context, median, row};
use program::{Packets, Side};

/// A program in both languages, and the test that provides packets and entries.
struct Program {
    name: &'static str,
    p4: &'static str,
    test: &'static str,
    c: &'static [u8],
}

macro_rules! programs {
    ($($name:literal),* $(,)?) => {
        [$(Program {
            name: $name,
            p4: include_str!(concat!("../../../p4/tests/programs/", $name, ".p4")),
            test: include_str!(concat!("../../../p4/tests/programs/", $name, ".stf")),
            c: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".o")),
        }),*]
    };
}

const PROGRAMS: [Program; 11] = programs![
    "firewall",
    "nat",
    "tunnel_encap",
    "tunnel_decap",
    "vxlan",
    "rate_limiter",
    "load_balancer",
    "heavy_hitter",
    "gtpu",
    "srv6_end",
    "dns_filter",
];

/// Runs per figure, and packets per run.
struct Effort {
    rounds: usize,
    packets: usize,
}

const FULL: Effort = Effort { rounds: 41, packets: 100_000 };
const QUICK: Effort = Effort { rounds: 11, packets: 20_000 };

/// Measures the cost of a packet for each program in nanoseconds compared with C (`p4/NAME`), and
/// the cost of running programs in separate processes (`sandbox/…`).
///
/// # Errors
///
/// Fails if a program does not compile, or if the two implementations differ.
pub fn bench(context: &Context<'_>, quick: bool) -> Result<Vec<Row>> {
    let effort = if quick { QUICK } else { FULL };
    let mut rows = Vec::with_capacity(PROGRAMS.len());
    for program in &PROGRAMS {
        context.cancel.check()?;
        (context.say)(&format!("{}: compiled from P4, and in C", program.name));
        let packets = Packets::load(program.test)?;
        let mut ours = Side::compiled(program.name, program.p4, program.test)?;
        let mut theirs = Side::by_hand(program.name, program.c, &ours)?;
        program::agree(program.name, &packets, &mut ours, &mut theirs)?;
        let (mut mine, mut other) = (Vec::new(), Vec::new());
        // Alternate, so that disturbances of the machine affect both.
        for _ in 0..effort.rounds {
            mine.push(nanoseconds(ours.time(&packets, effort.packets), effort.packets));
            other.push(nanoseconds(theirs.time(&packets, effort.packets), effort.packets));
        }
        let name = format!("p4/{}", program.name);
        rows.push(row(&name, "ns", &mine, Better::Less, Some(median(&other))));
    }
    rows.extend(processes::bench(context, quick)?);
    Ok(rows)
}

fn nanoseconds(taken: Duration, packets: usize) -> f64 {
    taken.as_nanos() as f64 / packets as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both implementations must agree byte by byte, including the final contents of their maps.
    #[test]
    fn both_do_the_same() {
        for program in &PROGRAMS {
            let packets = Packets::load(program.test).expect("a test");
            let mut ours = Side::compiled(program.name, program.p4, program.test).expect("P4");
            let mut theirs = Side::by_hand(program.name, program.c, &ours).expect("C");
            program::agree(program.name, &packets, &mut ours, &mut theirs).expect("they agree");
        }
    }
}
