//! Jobs for a running pump.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use emulator::{Nanos, Network};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::Error;
use crate::edge::{Edge, EdgeCounts};

/// A job that runs between two packets.
pub(crate) type Job = Box<dyn FnOnce(&mut Network, &[Edge], Nanos) + Send>;

/// The emulator has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the emulator exited")]
pub struct Gone;

impl From<Gone> for tonic::Status {
    fn from(gone: Gone) -> Self {
        Self::unavailable(gone.to_string())
    }
}

/// A handle to a running pump. The pump ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub struct Remote {
    // Declared first, so that it is dropped before the last wakeup.
    jobs: Sender<Job>,
    bell: Arc<Bell>,
}

/// Signals the eventfd on drop, so that the pump notices when no handle is left.
#[derive(Debug)]
struct Bell(Arc<EventFd>);

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = self.0.write(1);
    }
}

/// The pump's end of the channel.
pub(crate) struct Inbox {
    pub(crate) jobs: Receiver<Job>,
    pub(crate) bell: Arc<EventFd>,
}

pub(crate) fn pair() -> Result<(Remote, Inbox), Error> {
    let refused = |source| Error::Refused { doing: "make an eventfd", source };
    let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
    let bell = Arc::new(EventFd::from_flags(flags).map_err(refused)?);
    let (jobs, inbox) = mpsc::channel();
    let remote = Remote { jobs, bell: Arc::new(Bell(Arc::clone(&bell))) };
    Ok((remote, Inbox { jobs: inbox, bell }))
}

impl Remote {
    /// Runs a job on the pump's network between two packets, and waits for its result.
    pub fn with<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Network, Nanos) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        self.ask(|network, _, now| job(network, now))
    }

    /// Returns the counters of a range of edges.
    pub fn edges(&self, numbers: Range<usize>) -> Result<Vec<EdgeCounts>, Gone> {
        self.ask(|_, edges, _| {
            let some = edges.get(numbers).unwrap_or_default();
            some.iter().map(Edge::counts).collect()
        })
    }

    fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Network, &[Edge], Nanos) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        let (done, result) = mpsc::channel();
        let job: Job = Box::new(move |network, edges, now| {
            // The caller may have given up.
            let _ = done.send(job(network, edges, now));
        });
        self.jobs.send(job).map_err(|_| Gone)?;
        self.bell.0.write(1).map_err(|_| Gone)?;
        result.recv().map_err(|_| Gone)
    }
}
