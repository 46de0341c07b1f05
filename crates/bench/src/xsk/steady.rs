//! TCP for ten minutes (TransP4, figure 10): the throughput of each second, by the length of each
//! write, through the switch alone and under a program.

use std::time::Duration;

use anyhow::{Result, ensure};
use openvswitch::Installation;

use super::switch::{Side, Switch};
use super::{FULL, Program};
use crate::hosts::Hosts;
use crate::iperf::{self, Load};
use crate::{Better, Context, Row, median, row};

/// Time of a side, with all lengths.
const TIME_OF_A_SIDE: Duration = Duration::from_secs(600);

/// Sides, each with the name of its rows. The first one is the baseline of the others.
const SIDES: [(Side, &str); 3] =
    [(Side::Alone, "steady-alone"), (Side::Process, "steady"), (Side::Inline, "steady-inline")];

/// Returns a row for each side and length (`steady/6`), whose lowest and highest values are those of
/// the slowest and the fastest second.
pub(super) fn bench(
    context: &Context<'_>,
    installation: &Installation,
    program: &Program,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let each = (TIME_OF_A_SIDE / u32::try_from(FULL.tcp.len())?).as_secs();
    for length in FULL.tcp {
        let mut alone = None;
        for (side, name) in SIDES {
            context.cancel.check()?;
            (context.say)(&format!("{side:?}, {each} s with writes of {length} bytes"));
            let hosts = Hosts::new()?;
            let _switch = Switch::start(context, installation, &hosts, side, program)?;
            let ends = (&hosts.client, &hosts.server);
            let load = Load::tcp(*length);
            let seconds =
                iperf::seconds_of_stream(&context.cancel, ends, Hosts::SERVER.into(), each, load)?;
            ensure!(!seconds.is_empty(), "iperf3 reports no second");
            let baseline = *alone.get_or_insert_with(|| median(&seconds));
            let baseline = (side != Side::Alone).then_some(baseline);
            let name = format!("{name}/{length}");
            rows.push(row(&name, "Mbit/s", &seconds, Better::More, baseline));
        }
    }
    Ok(rows)
}
