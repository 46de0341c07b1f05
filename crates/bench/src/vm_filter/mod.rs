//! The published experiment with a filter that depends on data published by a VM (TransP4, figure
//! 7): a load that saturates the VM's network is blocked above 30 % utilization, and accepted again
//! below 10 %.
//!
//! Published data takes the same path as in production: `kaido p4 publish` in a separate process,
//! shared memory, the sandbox's reader, and the program in its process. The VM is simulated, so
//! that every run is identical: time advances in steps of 50 ms, and the packets of a step are
//! processed once the program can see the data that the VM published at the end of the previous
//! step.

mod figure;
mod live;
mod tenant;

use anyhow::{Result, ensure};

use crate::Context;
use crate::row::{Better, Row, row};
pub use live::live;
use tenant::{Passed, Tenant};

/// Milliseconds per step.
const STEP_MS: u32 = 50;
const STEPS: u32 = 240;
/// Packets that the VM's network can carry per step.
const CAPACITY: u32 = 200;
/// Packets per step to the protected port.
const PROTECTED: u32 = 10;
/// Thresholds in per mille above which the filter is switched on, and below which it is switched
/// off.
const ON_ABOVE: u32 = 300;
const OFF_BELOW: u32 = 100;

/// Returns the number of packets in a step to the other port: none at first; a high load; a load
/// between the thresholds; a high load again.
fn offered(step: u32) -> u32 {
    match step {
        0..30 => 0,
        30..130 => 120,
        130..180 => 30,
        _ => 120,
    }
}

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    /// Utilization in per mille, as seen by the program.
    used: u32,
    /// Forwarded packets to each port.
    protected: u32,
    load: u32,
    /// True if the load's packets were dropped; `None` if there were none.
    on: Option<bool>,
}

/// Runs the experiment and checks the filter. Returns the figure as SVG, and two rows: the
/// utilization in per mille at which the filter was switched on (`vm-filter/on`) and off
/// (`vm-filter/off`).
///
/// # Errors
///
/// Fails if a component cannot run, or if the filter was in the wrong state.
pub fn run(context: &Context<'_>) -> Result<(Vec<Row>, String)> {
    (context.say)("a filter by what a VM publishes");
    let mut tenant = Tenant::start(context)?;
    let mut steps = Vec::with_capacity(STEPS as usize);
    // In 1024ths of a packet: a mean over about 16 steps.
    let mut mean = 0;
    for step in 0..STEPS {
        context.cancel.check()?;
        let used = mean * 1000 / (CAPACITY * 1024);
        tenant.publish(step, used)?;
        let Passed { protected, load } = tenant.packets(PROTECTED, offered(step))?;
        ensure!(load == 0 || load == offered(step), "step {step}: {load} packets of a step passed");
        let on = (offered(step) > 0).then_some(load == 0);
        steps.push(Step { used, protected, load, on });
        mean = mean - mean / 16 + (protected + load) * 1024 / 16;
    }
    let changes = check(&steps)?;
    let row = |name, at: &[f64]| row(name, "per mille", at, Better::Near(0.0), None);
    let rows = vec![row("vm-filter/on", &changes.on), row("vm-filter/off", &changes.off)];
    Ok((rows, figure::draw(&steps)?))
}

/// Utilization in per mille at which the filter was switched on and off.
#[derive(Debug, Default)]
struct Changes {
    on: Vec<f64>,
    off: Vec<f64>,
}

/// Checks each step: the filter is switched on in the first step above the upper threshold, off in
/// the first step below the lower one, and never between them. Protected packets always pass.
fn check(steps: &[Step]) -> Result<Changes> {
    let (mut is_on, mut changes) = (false, Changes::default());
    for (at, step) in steps.iter().enumerate() {
        let before = is_on;
        is_on = step.used > ON_ABOVE || (is_on && step.used >= OFF_BELOW);
        match (before, is_on) {
            (false, true) => changes.on.push(f64::from(step.used)),
            (true, false) => changes.off.push(f64::from(step.used)),
            _ => {}
        }
        let found = step.on.unwrap_or(is_on);
        ensure!(found == is_on, "step {at}: at {} per mille the filter is on: {found}", step.used);
        ensure!(step.protected == PROTECTED, "step {at}: {} protected packets", step.protected);
    }
    ensure!(changes.on.len() > 1 && changes.off.len() > 1, "the filter did not go on and off");
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(of: &[(u32, bool)]) -> Vec<Step> {
        let step = |(used, on): &(u32, bool)| Step {
            used: *used,
            protected: PROTECTED,
            load: if *on { 0 } else { 120 },
            on: Some(*on),
        };
        of.iter().map(step).collect()
    }

    #[test]
    fn a_filter_that_is_wrong_is_seen() {
        let right = [
            (50, false),
            (300, false),
            (301, true),
            (200, true),
            (100, true),
            (99, false),
            (250, false),
            (400, true),
            (90, false),
        ];
        let changes = check(&steps(&right)).unwrap();
        assert_eq!((changes.on, changes.off), (vec![301.0, 400.0], vec![99.0, 90.0]));
        for at in 0..right.len() {
            let mut wrong = right;
            wrong[at].1 = !wrong[at].1;
            assert!(check(&steps(&wrong)).is_err(), "{at}");
        }
    }
}
