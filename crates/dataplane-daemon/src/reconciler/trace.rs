//! Tracing: runs while a client reads the packets.

use bpf::Filter;

use super::{Reconciler, name};
use crate::Error;
use crate::trace::{Sink, Trace};

impl Reconciler {
    /// Traces the first `most` packets that match.
    pub(crate) fn trace(&mut self, filter: Filter, most: u32, sink: Sink) -> Result<(), Error> {
        // The trace of a killed client may not have been ended yet.
        if self.trace.as_ref().is_some_and(Trace::is_abandoned) {
            self.end_trace();
        }
        if self.trace.is_some() {
            return Err(Error::Traced);
        }
        self.plane.trace().ok_or(Error::NothingToTrace)?.start(filter, most)?;
        self.trace = Some(Trace::new(most, sink));
        Ok(())
    }

    /// Forwards traced packets to the client, and ends the trace when the client expects no more.
    pub(super) fn continue_trace(&mut self) {
        let (Some(trace), Some(plane)) = (&mut self.trace, self.plane.trace()) else { return };
        let name = |tenant| name(&self.tenants, &self.table_tenants, tenant);
        match trace.go_on(plane, &name) {
            Ok(true) => {}
            Ok(false) => self.end_trace(),
            Err(error) => {
                tracing::warn!("the trace ends: {}", api::in_one_line(&error));
                self.end_trace();
            }
        }
    }

    /// Ends the trace, if there is one.
    pub(crate) fn end_trace(&mut self) {
        self.trace = None;
        let Some(plane) = self.plane.trace() else { return };
        if let Err(error) = plane.stop() {
            tracing::warn!("the tracer stays in front: {}", api::in_one_line(&error));
        }
    }
}
