//! A device's thread, which executes jobs on its state. Jobs of its primary come first.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tonic::Status;

use crate::core::Core;
use crate::device::{Device, Event};
use crate::peer::Peer;
use crate::reading::{Progress, ReadOutcome, Reading};

/// Capacity of each of a device's job queues; further requests are not read from the network.
const WAITING: usize = 64;

/// Maximum number of consecutive jobs of primaries while others wait: a client can become primary
/// however busy the present one is.
const IN_A_ROW: usize = 16;

/// Maximum number of reads of clients that are not primary that a device executes concurrently.
const READS: usize = 2;

/// Time after which a read of a client that is not primary is interrupted.
const SLICE: Duration = Duration::from_millis(20);

type Job<D> = Box<dyn FnOnce(&mut Core<D>) + Send>;

/// Reports a panic of the thread.
struct TellPanic(u64, watch::Sender<Option<u64>>);

impl Drop for TellPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.1.send_replace(Some(self.0));
        }
    }
}

/// Requester of a job.
#[derive(Debug, Clone, Copy)]
pub(crate) enum By {
    /// The device's primary, or the device.
    Primary,
    Other,
}

impl By {
    /// Requester of a job of a device. The primary of another device has no precedence.
    pub(crate) fn peer(peer: &Peer, device: u64) -> Self {
        if peer.is_primary(device) { Self::Primary } else { Self::Other }
    }

    pub(crate) fn is_primary(self) -> bool {
        matches!(self, Self::Primary)
    }
}

/// Waiting jobs.
struct Jobs<D: Device> {
    primaries: mpsc::Receiver<Job<D>>,
    others: mpsc::Receiver<Job<D>>,
    /// Number of consecutive jobs of primaries.
    in_a_row: usize,
}

impl<D: Device> Jobs<D> {
    /// Waits for the next job. `None` if there are no more handles.
    async fn next(&mut self) -> Option<Job<D>> {
        if self.in_a_row >= IN_A_ROW
            && let Ok(job) = self.others.try_recv()
        {
            self.in_a_row = 0;
            return Some(job);
        }
        tokio::select! {
            biased;
            Some(job) = self.primaries.recv() => {
                self.in_a_row += 1;
                Some(job)
            }
            Some(job) = self.others.recv() => {
                self.in_a_row = 0;
                Some(job)
            }
            else => None,
        }
    }
}

/// Handle of a device's thread.
pub(crate) struct Handle<D: Device> {
    primaries: mpsc::Sender<Job<D>>,
    others: mpsc::Sender<Job<D>>,
    /// Places for reads of clients that are not primary.
    reads: Arc<Semaphore>,
}

impl<D: Device> Clone for Handle<D> {
    fn clone(&self) -> Self {
        let (primaries, others) = (self.primaries.clone(), self.others.clone());
        Self { primaries, others, reads: Arc::clone(&self.reads) }
    }
}

impl<D: Device> Handle<D> {
    /// Starts a device's thread, and the task that forwards its events.
    pub(crate) fn start(
        number: u64,
        mut device: D,
        panicked: watch::Sender<Option<u64>>,
    ) -> std::io::Result<Self> {
        let (primaries, of_primaries) = mpsc::channel(WAITING);
        let (others, of_others) = mpsc::channel(WAITING);
        let mut jobs = Jobs { primaries: of_primaries, others: of_others, in_a_row: 0 };
        let (events, runtime) = (device.events(), runtime::Handle::current());
        let work = move || {
            let _tell = TellPanic(number, panicked);
            let mut core = Core::new(number, device);
            while let Some(job) = runtime.block_on(jobs.next()) {
                job(&mut core);
            }
        };
        std::thread::Builder::new().name(format!("p4runtime-{number}")).spawn(work)?;
        // The task that forwards events does not keep the device alive.
        tokio::spawn(pass_on(primaries.downgrade(), events));
        Ok(Self { primaries, others, reads: Arc::new(Semaphore::new(READS)) })
    }

    /// Runs a job on the device's thread.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        by: By,
        job: impl FnOnce(&mut Core<D>) -> T + Send + 'static,
    ) -> Result<T, Status> {
        run(self.queue(by), |core, _| job(core)).await
    }

    fn queue(&self, by: By) -> &mpsc::Sender<Job<D>> {
        match by {
            By::Primary => &self.primaries,
            By::Other => &self.others,
        }
    }

    /// Executes a read: a primary's in one job, and one of another client in parts.
    pub(crate) async fn read(&self, by: By, mut reading: Reading) -> Result<ReadOutcome, Status> {
        let (_place, slice) = match by {
            By::Primary => (None, None),
            By::Other => (Some(self.reads.acquire().await.map_err(|_| stopped())?), Some(SLICE)),
        };
        loop {
            let part = run(self.queue(by), move |core, is_gone| core.read(reading, slice, is_gone));
            match part.await?? {
                Progress::Done(outcome) => return Ok(outcome),
                Progress::More(more) => reading = more,
            }
        }
    }
}

/// Runs a job, which can check if its requester has disconnected.
async fn run<D: Device, T: Send + 'static>(
    queue: &mpsc::Sender<Job<D>>,
    job: impl FnOnce(&mut Core<D>, &dyn Fn() -> bool) -> T + Send + 'static,
) -> Result<T, Status> {
    let (reply, answer) = oneshot::channel();
    let job: Job<D> = Box::new(move |core| {
        let done = job(core, &|| reply.is_closed());
        // The requester may have disconnected.
        let _ = reply.send(done);
    });
    queue.send(job).await.map_err(|_| stopped())?;
    answer.await.map_err(|_| stopped())
}

fn stopped() -> Status {
    Status::unavailable("the device is not running any more")
}

/// Maximum number of events handled in one job.
const AT_ONCE: usize = 256;

async fn pass_on<D: Device>(to: mpsc::WeakSender<Job<D>>, mut events: mpsc::Receiver<Event>) {
    let mut next: Option<Instant> = None;
    let mut open = true;
    while open || next.is_some() {
        let mut some = Vec::new();
        let due = async {
            match next {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            count = events.recv_many(&mut some, AT_ONCE), if open => open = count > 0,
            () = due => {}
        }
        let Some(queue) = to.upgrade() else { return };
        match run(&queue, |core, _| core.events(some, Instant::now())).await {
            Ok(at) => next = at,
            Err(_) => return,
        }
    }
}
