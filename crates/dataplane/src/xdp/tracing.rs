//! Tracing: a tracer runs before the program on every port, and each packet that it copies is
//! replayed through a second instance of the program.

use std::os::fd::BorrowedFd;
use std::path::Path;

use bpf::{Filter, Replay, Replayed, Srv6, Traced, Tracer};

use crate::Error;

/// An active trace.
pub(super) struct Tracing {
    tracer: Tracer,
    replay: Replay,
}

impl Tracing {
    /// Loads a tracer for the first `most` packets that match, pins it, and loads the second
    /// instance.
    pub(super) fn load(srv6: &Srv6, filter: Filter, most: u32, pin: &Path) -> Result<Self, Error> {
        let tracer = Tracer::load(srv6.program(), filter, most)?;
        let replay = srv6.replay()?;
        tracer.pin(pin)?;
        Ok(Self { tracer, replay })
    }

    /// Returns the program to attach in place of the data plane's.
    pub(super) fn program(&self) -> BorrowedFd<'_> {
        self.tracer.program()
    }

    /// Returns the packets traced since the last call.
    pub(super) fn packets(&self) -> Result<Vec<Traced>, Error> {
        Ok(self.tracer.packets()?)
    }

    /// Replays a packet through the second instance.
    pub(super) fn replay(&self, packet: &Traced) -> Result<Replayed, Error> {
        Ok(self.replay.run(packet.interface, &packet.frame())?)
    }
}
