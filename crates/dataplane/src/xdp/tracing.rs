//! Tracing: a tracer stands in front of the program on every port, and what it catches is run
//! through the program once more, by itself.

use bpf::{Filter, Replay, Replayed, Traced, Tracer};

use super::Xdp;
use super::pins::remove;
use crate::Error;

/// A trace that is under way.
pub(super) struct Tracing {
    tracer: Tracer,
    replay: Replay,
}

impl Xdp {
    /// Traces the first `most` packets that match, in place of what was traced before. It ends when
    /// larger tables are needed, too.
    pub fn trace(&mut self, filter: Filter, most: u32) -> Result<(), Error> {
        self.end_trace()?;
        let program = self.tables.program();
        let tracer = Tracer::load(program.program(), filter, most)?;
        let replay = program.replay()?;
        tracer.pin(&self.pins.trace())?;
        let done = self.put_on_all(tracer.program());
        self.trace = Some(Tracing { tracer, replay });
        if done.is_err() {
            // The first error is the one to report.
            let _ = self.end_trace();
        }
        done
    }

    /// What was caught since the last call; nothing when no trace is under way any more.
    pub fn traced(&self) -> Result<Option<Vec<Traced>>, Error> {
        Ok(self.trace.as_ref().map(|trace| trace.tracer.packets()).transpose()?)
    }

    /// Runs a packet through the program once more; nothing when no trace is under way any more.
    pub fn replay(&self, packet: &Traced) -> Result<Option<Replayed>, Error> {
        let run = |trace: &Tracing| trace.replay.run(packet.interface, &packet.frame());
        Ok(self.trace.as_ref().map(run).transpose()?)
    }

    /// Puts the program back in the tracer's place.
    pub fn end_trace(&mut self) -> Result<(), Error> {
        // The tracer goes last: without it there would be no way to the program.
        let Some(_tracing) = self.trace.take() else { return Ok(()) };
        // Should this fail, the pin stays, and packets find their way through the tracer.
        self.put_on_all(self.tables.program().program())?;
        let _ = remove(&self.pins.trace());
        Ok(())
    }

    /// Of a daemon that was killed while it traced; no port leads there any more.
    pub(super) fn forget_old_trace(&self) {
        if self.trace.is_none() {
            let _ = remove(&self.pins.trace());
        }
    }
}
