//! How fast and how exact emulated networks are, beside the published experiments of GINE, an emulator of
//! wide-area networks with netfilter queues and network namespaces.

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

/// The lab of every experiment.
const LAB: &str = "bench-emulator";

/// Runs the experiments.
pub fn bench(context: &Context<'_>, quick: bool) -> Result<Vec<Row>> {
    let mut rows = stream::bench(context, quick)?;
    rows.extend(packets::bench(context, quick)?);
    rows.extend(exact::bench(context, quick)?);
    rows.extend(cross::bench(context, quick)?);
    rows.extend(late::bench(context, quick)?);
    if !quick {
        // Protocols take minutes.
        rows.extend(reroute::bench(context)?);
    }
    Ok(rows)
}
