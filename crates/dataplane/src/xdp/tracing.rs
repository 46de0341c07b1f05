//! Tracing: a tracer runs before the program on every port, and each packet that it copies is
//! replayed through a second instance of the program.

use bpf::{Filter, Replay, Replayed, Traced, Tracer};

use super::Xdp;
use super::pins::remove;
use crate::forwarding::Forwarding;
use crate::{Counted, Error, Trace};

/// An active trace.
pub(super) struct Tracing {
    tracer: Tracer,
    replay: Replay,
}

impl Trace for Xdp {
    fn start(&mut self, filter: Filter, most: u32) -> Result<(), Error> {
        self.end_trace()?;
        let program = self.tables.program();
        let tracer = Tracer::load(program.program(), filter, most)?;
        let replay = program.replay()?;
        tracer.pin(&self.pins.trace())?;
        let done = self.put_on_all(tracer.program());
        self.trace = Some(Tracing { tracer, replay });
        if done.is_err() {
            // The first error is reported.
            let _ = self.end_trace();
        }
        done
    }

    fn packets(&self) -> Result<Option<Vec<Traced>>, Error> {
        Ok(self.trace.as_ref().map(|trace| trace.tracer.packets()).transpose()?)
    }

    fn replay(&self, packet: &Traced) -> Result<Option<Replayed>, Error> {
        let run = |trace: &Tracing| trace.replay.run(packet.interface, &packet.frame());
        Ok(self.trace.as_ref().map(run).transpose()?)
    }

    fn forwarding(&self) -> &Forwarding {
        self.tables.now()
    }

    fn counted(&self, counter: u32) -> Option<Counted<'_>> {
        self.tables.counted(counter)
    }

    fn stop(&mut self) -> Result<(), Error> {
        self.end_trace()
    }
}

impl Xdp {
    /// Replaces the tracer by the program.
    pub(super) fn end_trace(&mut self) -> Result<(), Error> {
        // The tracer is dropped last: without it, packets could not reach the program.
        let Some(_tracing) = self.trace.take() else { return Ok(()) };
        // If this fails, the pin remains, and packets reach the program through the tracer.
        self.put_on_all(self.tables.program().program())?;
        let _ = remove(&self.pins.trace());
        Ok(())
    }

    /// Removes the pin of a daemon that was killed during a trace. No port refers to it any more.
    pub(super) fn forget_old_trace(&self) {
        if self.trace.is_none() {
            let _ = remove(&self.pins.trace());
        }
    }
}
