//! Links that use the kernel's network emulator, netem, where available.

use emulator::Shape;
use model::topology::{Backend, Interface, Jitter, Shape as Wanted, Topology};
use netlink::{NETEM_SPREAD, Request};

use crate::Error;
use crate::error::MachineError;

/// Number of entries in the delay distribution table.
const ENTRIES: usize = 4096;

/// Rejects a lab whose links need netem if the kernel does not support it.
pub(crate) fn check(topology: &Topology) -> Result<(), Error> {
    let is_netem = |interface: &&Interface| interface.backend == Backend::Netem;
    let mut interfaces = topology.nodes.iter().flat_map(|node| &node.interfaces);
    let Some(interface) = interfaces.find(is_netem) else { return Ok(()) };
    let link = topology.segments[interface.segment].name.clone();
    netlink::try_netem().map_err(|source| Error::Machine(MachineError::NoNetem { link, source }))
}

/// The netem configuration of an interface.
pub(crate) fn request(interface: &Interface, device: u32) -> Request {
    let table = interface.impairments.jitter.map_or_else(Vec::new, table);
    netlink::replace_netem(device, &interface.impairments, &table)
}

/// Delay distribution table: quantiles in ascending order, each equally likely. The table's range
/// is limited: deviations above four times the spread are clamped.
fn table(jitter: Jitter) -> Vec<i16> {
    let shape = match jitter.shape {
        // Without a table, netem's distribution is uniform.
        Wanted::Uniform => return Vec::new(),
        Wanted::Normal => Shape::Normal,
        Wanted::Pareto => Shape::Pareto,
    };
    let part = |n: usize| (n as f64 + 0.5) / ENTRIES as f64;
    // The cast saturates.
    (0..ENTRIES).map(|n| (shape.quantile(part(n)) * NETEM_SPREAD) as i16).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn tables_have_the_mean_and_the_spread_that_are_asked_for() {
        for (shape, spread) in [(Wanted::Normal, 1.0), (Wanted::Pareto, 0.74)] {
            let table = table(Jitter { spread: Duration::from_millis(1), shape });
            let spreads: Vec<f64> = table.iter().map(|n| f64::from(*n) / NETEM_SPREAD).collect();
            let mean = spreads.iter().sum::<f64>() / ENTRIES as f64;
            let square = spreads.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / ENTRIES as f64;
            // The tail of the Pareto distribution is clamped.
            assert!(mean.abs() < 0.05 && (square.sqrt() - spread).abs() < 0.02, "{mean} {square}");
        }
    }
}
