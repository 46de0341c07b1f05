//! What a node does for its applications: steer and count.

use std::collections::BTreeMap;

use bpf::Meter;
use dataplane::Dataplane;
use model::{Assignment, Color, Flow, Policy, SegmentList, Telemetry};

use crate::measure::Measure;
use crate::{Config, Error};

/// The node's state, between sessions as well.
pub(crate) struct Agent {
    pub(crate) config: Config,
    dataplane: Box<dyn Dataplane>,
    meter: Meter,
    measure: Measure,
    /// What it was told since it started; the kernel has the rest.
    assignments: BTreeMap<Color, Assignment>,
}

impl Agent {
    pub(crate) fn new(
        config: Config,
        dataplane: Box<dyn Dataplane>,
        meter: Meter,
    ) -> Result<Self, Error> {
        let measure = Measure::new(&config.announcement)?;
        Ok(Self { config, dataplane, meter, measure, assignments: BTreeMap::new() })
    }

    /// What the kernel has, whoever put it there under Kaido's tag.
    pub(crate) fn installed(&mut self) -> Result<Vec<Policy>, Error> {
        Ok(self.dataplane.installed()?)
    }

    pub(crate) fn assignments(&self) -> impl Iterator<Item = &Assignment> {
        self.assignments.values()
    }

    /// Steers and counts an application as told. What went wrong is for the controller to know:
    /// the node lives on.
    pub(crate) fn assign(&mut self, assignment: Assignment) -> Result<(), Error> {
        let color = assignment.policy.color;
        self.steer(&assignment.policy)?;
        self.assignments.insert(color, assignment);
        self.count()
    }

    pub(crate) fn retract(&mut self, color: Color) -> Result<(), Error> {
        self.dataplane.remove(color)?;
        self.assignments.remove(&color);
        self.count()
    }

    fn steer(&mut self, policy: &Policy) -> Result<(), Error> {
        if policy.ipv4 == SegmentList::default() && policy.ipv6 == SegmentList::default() {
            return Ok(self.dataplane.remove(policy.color)?);
        }
        Ok(self.dataplane.install(policy)?)
    }

    fn count(&mut self) -> Result<(), Error> {
        let flows: BTreeMap<Color, Vec<Flow>> = self
            .assignments
            .iter()
            .map(|(color, assignment)| (*color, assignment.policy.flows.clone()))
            .collect();
        Ok(self.meter.set(&flows)?)
    }

    pub(crate) fn new_controller(&mut self) {
        self.measure.push_all();
    }

    pub(crate) fn tick(&mut self) -> Result<Option<Telemetry>, Error> {
        self.measure.tick(&self.meter)
    }
}
