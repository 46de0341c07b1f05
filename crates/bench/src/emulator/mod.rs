//! Speed and accuracy of emulated networks, compared with the published experiments of GINE, an
//! emulator of wide-area networks with netfilter queues and network namespaces.

mod cross;
mod exact;
mod hosts;
mod late;
mod load;
mod outside;
mod packets;
mod port;
mod reroute;
mod stream;

use anyhow::Result;

use crate::{Context, Row};

/// Name of the lab in every experiment.
const LAB: &str = "bench-emulator";

/// A group of experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// TCP and UDP through routers and namespaces.
    Streams,
    /// Packets of 64 bytes.
    Packets,
    /// Delays, losses and rates.
    Exact,
    /// TCP's share next to cross traffic.
    Cross,
    /// Lateness of packets.
    Late,
    /// Convergence time of routing after a link failure.
    Reroute,
}

/// Runs groups of experiments, each once and in this order.
pub fn bench(context: &Context<'_>, quick: bool, parts: &[Part]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for part in parts {
        rows.extend(match part {
            Part::Streams => stream::bench(context, quick)?,
            Part::Packets => packets::bench(context, quick)?,
            Part::Exact => exact::bench(context, quick)?,
            Part::Cross => cross::bench(context, quick)?,
            Part::Late => late::bench(context, quick)?,
            // Convergence of routing protocols takes minutes.
            Part::Reroute if quick => Vec::new(),
            Part::Reroute => reroute::bench(context)?,
        });
    }
    Ok(rows)
}
