//! The node's work for its applications: steering and counting.

use std::collections::BTreeMap;

use api::v1;
use bpf::Meter;
use dataplane::{Headend, normalized};
use model::{Announcement, Assignment, Color, Flow, Telemetry};

use crate::Error;
use crate::emulated::Reports;
use crate::functions::Functions;
use crate::measure::Measure;

/// The node's state, which outlives sessions.
pub(crate) struct Agent {
    announcement: Announcement,
    headend: Box<dyn Headend>,
    meter: Meter,
    measure: Measure,
    functions: Functions,
    /// The assignments received since the start; the kernel has older ones.
    assignments: BTreeMap<Color, Assignment>,
}

impl Agent {
    pub(crate) fn new(
        announcement: Announcement,
        headend: Box<dyn Headend>,
        meter: Meter,
        reports: Reports,
    ) -> Result<Self, Error> {
        let measure = Measure::new(&announcement, reports)?;
        let functions = Functions::new(announcement.functions.clone())?;
        let assignments = BTreeMap::new();
        Ok(Self { announcement, headend, meter, measure, functions, assignments })
    }

    /// The first message of a session: the current state of the node, and the policies in its
    /// kernel with Kaido's protocol ID, regardless of the process that installed them.
    pub(crate) fn hello(&mut self) -> Result<v1::Hello, Error> {
        let mut announcement = self.announcement.clone();
        self.measure.describe(&mut announcement)?;
        self.functions.describe(&mut announcement.functions)?;
        Ok(v1::Hello {
            installed: self.headend.installed()?.iter().map(Into::into).collect(),
            assignments: self.assignments.values().map(Into::into).collect(),
            ..(&announcement).into()
        })
    }

    /// Steers and counts an application as assigned. An error is reported to the controller; the
    /// node keeps running.
    pub(crate) fn assign(&mut self, assignment: Assignment) -> Result<(), Error> {
        let color = assignment.policy.color;
        let policy = assignment.policy.clone();
        let before = self.assignments.insert(color, assignment);
        // Count first: packets that are steered but not counted would be taken for other traffic.
        if let Err(error) = self.count() {
            match before {
                Some(before) => self.assignments.insert(color, before),
                None => self.assignments.remove(&color),
            };
            return Err(error);
        }
        Ok(self.headend.install(&policy)?)
    }

    pub(crate) fn retract(&mut self, color: Color) -> Result<(), Error> {
        self.headend.remove(color)?;
        self.assignments.remove(&color);
        self.count()
    }

    /// Restores entries that another process, or a link that went down, has removed from the
    /// kernel. Failures are retried.
    pub(crate) fn mend(&mut self) -> Result<(), Error> {
        let installed = self.headend.installed()?;
        for Assignment { policy, .. } in self.assignments.values() {
            let wanted = normalized(policy);
            if !installed.contains(&wanted) && self.headend.install(&wanted).is_ok() {
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

    /// Makes the next push complete.
    pub(crate) fn push_all(&mut self) {
        self.measure.push_all();
    }

    pub(crate) fn tick(&mut self) -> Result<Option<Telemetry>, Error> {
        let all = self.measure.is_whole_second();
        if all {
            self.mend()?;
        }
        let functions = self.functions.tick(all)?;
        self.measure.tick(&self.meter, functions)
    }
}
