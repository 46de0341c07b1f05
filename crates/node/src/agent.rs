//! What a node does for its applications: steer and count.

use std::collections::BTreeMap;

use bpf::Meter;
use dataplane::{Dataplane, normalized};
use model::{Announcement, Assignment, Color, Flow, Policy, Telemetry};

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

    /// What the node says of itself, with its interfaces as they are now.
    pub(crate) fn announcement(&mut self) -> Result<Announcement, Error> {
        let mut announcement = self.config.announcement.clone();
        self.measure.describe(&mut announcement)?;
        Ok(announcement)
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
        let policy = assignment.policy.clone();
        let before = self.assignments.insert(color, assignment);
        // Counted first: what is steered and not counted would be taken for others' traffic.
        if let Err(error) = self.count() {
            match before {
                Some(before) => self.assignments.insert(color, before),
                None => self.assignments.remove(&color),
            };
            return Err(error);
        }
        Ok(self.dataplane.install(&policy)?)
    }

    pub(crate) fn retract(&mut self, color: Color) -> Result<(), Error> {
        self.dataplane.remove(color)?;
        self.assignments.remove(&color);
        self.count()
    }

    /// Puts back what somebody else, or a link that went down, has taken from the kernel. What
    /// cannot be put back now is tried again.
    pub(crate) fn mend(&mut self) -> Result<(), Error> {
        let installed = self.dataplane.installed()?;
        for Assignment { policy, .. } in self.assignments.values() {
            let wanted = normalized(policy);
            if !installed.contains(&wanted) && self.dataplane.install(&wanted).is_ok() {
                tracing::warn!(color = policy.color.0, "its routes were gone, and are back");
            }
        }
        Ok(())
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
        self.measure.begin();
    }

    /// The next push says everything.
    pub(crate) fn push_all(&mut self) {
        self.measure.push_all();
    }

    pub(crate) fn tick(&mut self) -> Result<Option<Telemetry>, Error> {
        if self.measure.is_whole_second() {
            self.mend()?;
        }
        self.measure.tick(&self.meter)
    }
}
