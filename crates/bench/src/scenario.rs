//! One run of the experiment: a load and an application, with or without Kaido.

use std::time::Duration;

use anyhow::Result;

use crate::bed::{APP, Bed, LOAD, Scale};
use crate::iperf::{Traffic, Transfer};
use crate::ping::Ping;
use crate::reaction::{Reaction, Watch};
use crate::series::Series;

pub(crate) const APP_PORT: u16 = 5201;
pub(crate) const LOAD_PORT: u16 = 5202;
/// Time in seconds in which the application has the network for itself at first.
pub(crate) const LEAD: u64 = 3;

/// Load from host 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// UDP at half of the short branch's capacity: the application must not move.
    Half,
    /// UDP at its full capacity: the application must move.
    Full,
    /// Greedy TCP.
    Tcp,
}

impl Load {
    /// Returns a description with the rate on the wire.
    pub(crate) fn words(self, scale: Scale) -> String {
        let mbit = scale.short_branch();
        match self {
            Self::Half => format!("UDP at {} Mbit/s", mbit / 2.0),
            Self::Full => format!("UDP at {mbit} Mbit/s"),
            Self::Tcp => "greedy TCP".into(),
        }
    }

    fn traffic(self, scale: Scale) -> Traffic {
        match self {
            Self::Half => Traffic::Udp(scale.short_branch() / 2.0),
            Self::Full => Traffic::Udp(scale.short_branch()),
            Self::Tcp => Traffic::GreedyTcp,
        }
    }
}

/// Measured quantity. Each has separate runs, as published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measured {
    /// The application is greedy TCP.
    Throughput,
    /// The application is a ping.
    Latency,
}

/// Result of one run.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) load: Load,
    pub(crate) managed: bool,
    pub(crate) measured: Measured,
    /// Mbit/s of payload, or ms.
    pub(crate) of_load: Series,
    pub(crate) of_app: Series,
    /// Number of moves of the application.
    pub(crate) moves: usize,
    pub(crate) reaction: Option<Reaction>,
    /// Nodes of the application's path at the end; the IGP's path without Kaido.
    pub(crate) path: Vec<String>,
}

/// Runs the experiment once, for `seconds` in total.
pub(crate) fn run(
    bed: &Bed<'_>,
    load: Load,
    measured: Measured,
    managed: bool,
    seconds: u64,
) -> Result<Run> {
    bed.context.cancel.check()?;
    bed.manage(managed)?;
    let watch = managed.then(|| Watch::start(bed)).transpose()?;
    let traffic = load.traffic(bed.scale);
    let (of_load, of_app) = match measured {
        Measured::Throughput => {
            let app = Transfer::start(bed, APP, APP_PORT, Traffic::GreedyTcp, seconds)?;
            lead(bed)?;
            let load = Transfer::start(bed, LOAD, LOAD_PORT, traffic, seconds - LEAD)?;
            wait(bed, seconds - LEAD)?;
            (delayed(load.finish()?), app.finish()?)
        }
        Measured::Latency => {
            let app = Ping::start(bed, APP, seconds)?;
            let of_load = Ping::start(bed, LOAD, seconds)?;
            lead(bed)?;
            let load = Transfer::start(bed, LOAD, LOAD_PORT, traffic, seconds - LEAD)?;
            wait(bed, seconds - LEAD)?;
            load.finish()?;
            (of_load.finish()?, app.finish()?)
        }
    };
    let (reaction, moves) = watch.map(|w| w.finish(bed)).transpose()?.unwrap_or((None, 0));
    let igp = ["h3", "r1", "r3", "r5", "h2"].map(str::to_owned);
    let path = if managed { bed.application()?.path } else { igp.into() };
    Ok(Run { load, managed, measured, of_load, of_app, moves, reaction, path })
}

fn lead(bed: &Bed<'_>) -> Result<()> {
    wait(bed, LEAD)
}

/// Waits for `seconds`, or until the user cancels.
pub(crate) fn wait(bed: &Bed<'_>, seconds: u64) -> Result<()> {
    Ok(bed.context.cancel.wait(Duration::from_secs(seconds))?)
}

fn delayed(series: Series) -> Series {
    Series(series.0.into_iter().map(|(t, v)| (t + LEAD as f64, v)).collect())
}
