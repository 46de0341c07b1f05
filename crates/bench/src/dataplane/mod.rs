//! `kaido bench dataplane`: SRv6 in XDP compared with the kernel's, on the same packets in the same
//! run.
//!
//! - `program/…`: cost of a packet in the program alone, compared with a plain XDP End that
//!   performs a lookup in the kernel's table (BPF_PROG_TEST_RUN, without the cost of restoring the
//!   packet).
//! - `…/SIZE`: cost of a packet on a node from port to port, on one CPU. The generator's
//!   share, measured with a drop in the same run, is subtracted from both; the sink's share is
//!   included in both, which reduces the ratio.
//! - `forwarding/SIZE`: cost of plain IPv4 forwarding in the kernel, in the same run.
//! - `raw/…`: packets delivered per second, with generator and sink on the same CPU.
//! - `tagged/…`: cost of a packet in a VLAN of the SR domain, and `raw/tagged/…` its rate, compared with
//!   the same packet untagged.
//! - `two-cpus/…`: packets delivered per second on two CPUs, compared with one.
//! - `no-loss/…`: highest rate without loss, with the generator on another CPU.

mod bed;
mod bisection;
mod daemon;
mod function;
mod instructions;
mod napi;
mod no_loss;
mod packets;
mod processors;
mod program;
mod scale;
mod tagged;
mod wire;

use crate::{Context, Row};

pub use function::bench as function;
pub use scale::bench as scale;

/// Runs the benchmark.
pub fn bench(context: &Context<'_>, quick: bool) -> anyhow::Result<Vec<Row>> {
    let mut rows = program::bench(context, quick)?;
    rows.extend(wire::bench(context, quick)?);
    rows.extend(tagged::bench(context, quick)?);
    rows.extend(no_loss::bench(context, quick)?);
    rows.extend(processors::bench(context, quick)?);
    Ok(rows)
}
/// Runs the benchmarks for a guest with an instruction-counting clock.
pub fn instructions(context: &Context<'_>) -> anyhow::Result<Vec<Row>> {
    instructions::bench(context)
}
