//! What tenants' programs take: compiled P4 beside the same in C, by hand, with the same engine on the
//! same packets.

mod processes;
mod program;

use std::time::Duration;

use anyhow::Result;

use crate::row::{Better, Row};
use crate::{Context, median};
use program::{Packets, Side};

/// A program in both languages, and its test: where the packets and the entries come from.
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

/// Runs of a figure, and packets in each.
struct Effort {
    rounds: usize,
    packets: usize,
}

const FULL: Effort = Effort { rounds: 41, packets: 100_000 };
const QUICK: Effort = Effort { rounds: 11, packets: 20_000 };

/// Measures what a packet takes, program by program: `p4/NAME`, in nanoseconds, beside C; and what it
/// takes that programs run in processes of their own: `sandbox/…`.
///
/// # Errors
///
/// A program does not compile, or the two do not do the same.
pub fn bench(context: &Context<'_>, quick: bool) -> Result<Vec<Row>> {
    let effort = if quick { QUICK } else { FULL };
    let mut rows = Vec::with_capacity(PROGRAMS.len());
    for program in &PROGRAMS {
        context.cancel.check()?;
        (context.say)(&format!("{}: compiled from P4, and in C", program.name));
        let packets = Packets::of(program.test)?;
        let mut ours = Side::compiled(program.name, program.p4, program.test)?;
        let mut theirs = Side::by_hand(program.name, program.c, &ours)?;
        program::agree(program.name, &packets, &mut ours, &mut theirs)?;
        let (mut mine, mut other) = (Vec::new(), Vec::new());
        // Turn by turn: what else the machine does meets both.
        for _ in 0..effort.rounds {
            mine.push(nanoseconds(ours.time(&packets, effort.packets), effort.packets));
            other.push(nanoseconds(theirs.time(&packets, effort.packets), effort.packets));
        }
        let name = format!("p4/{}", program.name);
        rows.push(Row::of(&name, "ns", &mine, Better::Less, Some(median(&other))));
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

    /// What is compared does the same, to the byte, with what its maps hold in the end.
    #[test]
    fn both_do_the_same() {
        for program in &PROGRAMS {
            let packets = Packets::of(program.test).expect("a test");
            let mut ours = Side::compiled(program.name, program.p4, program.test).expect("P4");
            let mut theirs = Side::by_hand(program.name, program.c, &ours).expect("C");
            program::agree(program.name, &packets, &mut ours, &mut theirs).expect("they agree");
        }
    }
}
