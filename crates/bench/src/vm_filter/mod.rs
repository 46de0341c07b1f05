//! The published experiment with a filter by what a VM says of itself (TransP4, figure 7): a load that
//! fills the VM's network is shut out above 30 % of it, and let in again below 10 %.
//!
//! What is published goes through everything that it goes through at work: `kaido p4 publish` in a
//! process of its own, shared memory, the sandbox's reader, and the program in its process. The VM is
//! computed, so that each run is the same: time goes in steps of 50 ms, and a step's packets are judged
//! when the program can see what the VM has published at its end of the step before.

mod figure;
mod tenant;

use anyhow::{Result, ensure};

use crate::Context;
use crate::row::{Better, Row};
use tenant::Tenant;

/// Milliseconds of a step.
const STEP_MS: u32 = 50;
const STEPS: u32 = 240;
/// Packets that the VM's network carries in a step.
const CAPACITY: u32 = 200;
/// Packets of a step to the port that is protected.
const PROTECTED: u32 = 10;
/// Thousandths above which the filter is on, and below which it is off again.
const ON_ABOVE: u32 = 300;
const OFF_BELOW: u32 = 100;

/// Packets of a step to the other port: nothing at first; much; so much that the network is between the two
/// limits; much again.
fn offered(step: u32) -> u32 {
    match step {
        0..30 => 0,
        30..130 => 120,
        130..180 => 30,
        _ => 120,
    }
}

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    /// Thousandths of the network, as the program saw it.
    used: u32,
    /// Packets that passed, to either port.
    protected: u32,
    load: u32,
    /// Whether the load's packets were dropped. None: there were none.
    on: Option<bool>,
}

/// Runs the experiment, and looks that the filter does what it should; the figure, as SVG, and two rows: the
/// utilisation at which the filter went on (`vm-filter/on`) and off again (`vm-filter/off`), in per mille.
///
/// # Errors
///
/// Something does not run, or the filter was on or off when it should not have been.
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
        let (protected, load) = tenant.packets(PROTECTED, offered(step))?;
        ensure!(load == 0 || load == offered(step), "step {step}: {load} packets of a step passed");
        let on = (offered(step) > 0).then_some(load == 0);
        steps.push(Step { used, protected, load, on });
        mean = mean - mean / 16 + (protected + load) * 1024 / 16;
    }
    let changes = check(&steps)?;
    let row = |name, at: &[f64]| Row::of(name, "per mille", at, Better::Near(0.0), None);
    let rows = vec![row("vm-filter/on", &changes.on), row("vm-filter/off", &changes.off)];
    Ok((rows, figure::draw(&steps)?))
}

/// Where the filter went on and off, in thousandths of the network.
#[derive(Debug, Default)]
struct Changes {
    on: Vec<f64>,
    off: Vec<f64>,
}

/// Looks at each step: the filter goes on in the first one that is above the one limit, off in the first one
/// that is below the other, and never between them; what is protected always passes.
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
