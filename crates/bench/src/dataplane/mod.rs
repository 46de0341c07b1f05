//! `kaido bench dataplane`: SRv6 in XDP beside the kernel's, on the same packets in the same run.
//!
//! - `program/…`: what the program takes for a packet by itself, beside a plain XDP End that asks
//!   the kernel's table (BPF_PROG_TEST_RUN; what restoring the packet takes is off both).
//! - `…/SIZE`: what a node takes for a packet, from its port to its port, on one processor. The
//!   generator's share, measured against a drop in the same run, is off both; the sink's is in both,
//!   which brings the ratio down.
//! - `forwarding/SIZE`: what the kernel takes to forward plain IPv4, in the same run.
//! - `raw/…`: packets delivered per second, generator and sink on the same processor.
//! - `no-loss/…`: the largest rate at which nothing is lost, the generator on another processor.

mod bed;
mod bisection;
mod daemon;
mod function;
mod instructions;
mod napi;
mod no_loss;
mod packets;
mod program;
mod scale;
mod wire;

use crate::{Context, Row};

pub use function::bench as function;
pub use scale::bench as scale;

/// Runs the benchmark.
pub fn bench(context: &Context<'_>, quick: bool) -> anyhow::Result<Vec<Row>> {
    let mut rows = program::bench(context, quick)?;
    rows.extend(wire::bench(context, quick)?);
    rows.extend(no_loss::bench(context, quick)?);
    Ok(rows)
}
/// Runs what is meant for a guest whose clock counts instructions.
pub fn instructions(context: &Context<'_>) -> anyhow::Result<Vec<Row>> {
    instructions::bench(context)
}
