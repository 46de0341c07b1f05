//! Packet path through the running program.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use p4_object::Object;
use sandbox::process::Isolation;
use sandbox::{Digest, Maps};
use tokio::sync::mpsc;

use super::layouts::DigestAt;
use crate::device::{Event, Packet, Refused};
use crate::pipeline::Param;
use crate::values::{self, Bits};

/// Default port number of the control plane.
pub const CPU_PORT: u32 = 255;

/// Name of the metadata field with a packet's port.
const PORT: &str = "ingress_port";

/// Headroom and tailroom of a packet in bytes.
pub(super) const CAPACITY: usize = 1024;

/// Capacity of the event queue.
const WAITING: usize = 1024;

/// A running program, in this process or another one.
pub trait Running: Maps + Send + 'static {
    /// Runs the program on a packet received on `port`, at the packet's own time, or at the host
    /// time if `None`.
    ///
    /// # Errors
    ///
    /// Fails if the packet cannot be submitted.
    fn run(&mut self, port: u32, packet: &[u8], at: Option<Duration>) -> Result<Ran, Refused>;

    /// Takes pending digests, oldest first.
    fn digests(&mut self) -> Vec<Digest>;

    /// Current health. Call this periodically: it detects that a process has exited, and restarts
    /// it.
    fn health(&mut self) -> Health;

    /// Ends the program.
    fn end(self)
    where
        Self: Sized,
    {
    }
}

/// Health of the process that executes the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// Process id, if the program runs in a separate process.
    pub process: Option<u32>,
    /// Number of processes that exited, missed a deadline or violated the protocol.
    pub failures: u64,
    /// True if the program is evicted, so that no further process is started.
    pub is_evicted: bool,
    /// Reason that the last process was killed.
    pub last_failure: Option<String>,
    /// Isolation of the process.
    pub isolation: Isolation,
    /// Missing parts of the usual isolation, and the CPU limit if it is configured and not set.
    pub lacks: Isolation,
    /// True if a client hosts the program in its own process.
    pub is_hosted: bool,
}

/// The installed program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// Sequence number of the program: 1 for the first one, 0 if there has been none.
    pub number: u64,
    /// Keys of VM values that the program reads.
    pub vm_keys: Vec<String>,
}

/// Loader of programs.
pub trait Runner: Send + 'static {
    /// Type of a running program.
    type Running: Running;

    /// Verifies an object and prepares it. Its maps contain the initial entries.
    ///
    /// # Errors
    ///
    /// Fails if the object is invalid or exceeds a limit.
    fn load(&mut self, object: &Object) -> Result<Self::Running, Refused>;
}

/// Verdict for a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The program aborted.
    Abort,
    /// Drop the packet.
    Drop,
    /// Let the packet continue to its original destination.
    Pass,
    /// Send the packet out of a port.
    Redirect(u32),
    /// No verdict of the program, with the reason.
    Fault(String),
}

/// Result of running a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Verdict.
    pub verdict: Verdict,
    /// Egress port of a clone.
    pub clone: Option<u32>,
    /// The resulting packet.
    pub packet: Vec<u8>,
}

/// Packet counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each says what it is")]
pub struct Counts {
    pub passed: u64,
    pub redirected: u64,
    pub dropped: u64,
    pub aborted: u64,
    /// Packets dropped without a verdict, for example after a fault.
    pub faults: u64,
    pub cloned: u64,
    /// Packets sent to the control plane; also counted above.
    pub to_cpu: u64,
    /// Packets for the control plane that were dropped.
    pub lost: u64,
    /// Digests emitted by programs.
    pub digests: u64,
    /// Digests that were dropped.
    pub lost_digests: u64,
}

/// Egress port and packet.
pub type Leaving = (u32, Vec<u8>);

/// The running program and its packet counters.
pub(super) struct State<R> {
    pub(super) running: Option<R>,
    pub(super) program: Installed,
    /// Metadata fields of packet-in.
    pub(super) packet_in: Vec<Param>,
    /// Digest layouts, by their ids in the program.
    pub(super) digests: BTreeMap<u32, DigestAt>,
    cpu_port: u32,
    events: mpsc::Sender<Event>,
    counts: Counts,
    last_fault: Option<String>,
}

/// Entry point for packets. Clones share the plane.
pub struct Plane<R> {
    state: Arc<Mutex<State<R>>>,
    is_ending: Arc<AtomicBool>,
}

impl<R> Clone for Plane<R> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), is_ending: Arc::clone(&self.is_ending) }
    }
}

impl<R: Running> Plane<R> {
    pub(super) fn new(cpu_port: u32) -> (Self, mpsc::Receiver<Event>) {
        let (events, receiver) = mpsc::channel(WAITING);
        let state = State {
            running: None,
            program: Installed::default(),
            packet_in: Vec::new(),
            digests: BTreeMap::new(),
            cpu_port,
            events,
            counts: Counts::default(),
            last_fault: None,
        };
        let state = Arc::new(Mutex::new(state));
        (Self { state, is_ending: Arc::default() }, receiver)
    }

    /// The state is consistent even after a panic with the lock held: batches are atomic.
    pub(super) fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the program on a packet received on `port`. Returns the packets that leave on ports
    /// other than the CPU port; a passed packet leaves on its ingress port.
    ///
    /// # Errors
    ///
    /// Fails if no program is running, or if the packet cannot be submitted.
    pub fn packet(
        &self,
        port: u32,
        packet: &[u8],
        at: Option<Duration>,
    ) -> Result<Vec<Leaving>, Refused> {
        self.lock().packet(port, packet, at)
    }

    /// Packet counters since the start.
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// The installed program.
    pub fn program(&self) -> Installed {
        self.lock().program.clone()
    }

    /// Health of the running program; `None` if there is none.
    pub fn health(&self) -> Option<Health> {
        self.lock().running.as_mut().map(Running::health)
    }

    /// Sends digests of packets that did not come through this plane to the control plane.
    pub fn forward_digests(&self) {
        self.lock().forward_digests();
    }

    /// Sends pending digests to the control plane, and calls a function on the installed program.
    /// Returns `None` while a request of the control plane uses it, which can take seconds.
    pub fn try_with<T>(&self, function: impl FnOnce(&Installed, Option<&mut R>) -> T) -> Option<T> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        state.forward_digests();
        let State { program, running, .. } = &mut *state;
        Some(function(program, running.as_mut()))
    }

    /// Calls a function on the running program, between two packets of this plane.
    pub fn with<T>(&self, function: impl FnOnce(&mut R) -> T) -> Option<T> {
        self.lock().running.as_mut().map(function)
    }

    /// Stops the running program. Its process has exited on return, even if the plane has other
    /// clones.
    pub fn end(&self) {
        self.cancel();
        if let Some(running) = self.lock().running.take() {
            running.end();
        }
    }

    /// Ends requests of the control plane that can take long: a change of the program that carries values
    /// over, and changes that are made one by one. Later changes of the program fail.
    pub fn cancel(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
    }

    /// Returns true after [`Plane::cancel`].
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    /// Reason for the last missing verdict.
    pub fn last_fault(&self) -> Option<String> {
        self.lock().last_fault.clone()
    }
}

impl<R: Running> State<R> {
    /// Sends pending digests to the control plane.
    fn forward_digests(&mut self) {
        let digests = self.running.as_mut().map(Running::digests).unwrap_or_default();
        for digest in digests {
            self.counts.digests += 1;
            let of = self.digests.get(&digest.id);
            let data =
                of.and_then(|of| Some(Event::Digest { id: of.id, data: of.data(&digest.data)? }));
            // Reserve half of the queue for packets, so that digests cannot fill it.
            let event = data.filter(|_| self.events.capacity() > WAITING / 2);
            if event.is_none_or(|event| self.events.try_send(event).is_err()) {
                self.counts.lost_digests += 1;
            }
        }
    }

    fn packet(
        &mut self,
        port: u32,
        packet: &[u8],
        at: Option<Duration>,
    ) -> Result<Vec<Leaving>, Refused> {
        let none = || Refused::Away("no program".to_owned());
        let running = self.running.as_mut().ok_or_else(none)?;
        let Ran { verdict, clone, packet } = running.run(port, packet, at)?;
        self.forward_digests();
        let counts = &mut self.counts;
        let to = match verdict {
            Verdict::Pass => {
                counts.passed += 1;
                Some(port)
            }
            Verdict::Redirect(to) => {
                counts.redirected += 1;
                Some(to)
            }
            Verdict::Drop => {
                counts.dropped += 1;
                None
            }
            Verdict::Abort => {
                counts.aborted += 1;
                None
            }
            Verdict::Fault(fault) => {
                counts.faults += 1;
                self.last_fault = Some(fault);
                None
            }
        };
        counts.cloned += u64::from(clone.is_some());
        let mut leaving = Vec::new();
        for to in clone.into_iter().chain(to) {
            match to == self.cpu_port {
                true => self.tell(port, &packet),
                false => leaving.push((to, packet.clone())),
            }
        }
        Ok(leaving)
    }

    /// Queues a packet-in.
    fn tell(&mut self, came_by: u32, packet: &[u8]) {
        let value = |param: &Param| match &*param.name {
            PORT => values::unsigned(&came_by.to_be_bytes(), param.width)
                .unwrap_or_else(|| values::ones(param.width)),
            _ => values::zero(param.width),
        };
        let metadata = self.packet_in.iter().map(|param| (param.id, value(param))).collect();
        let event = Event::Packet(Packet { payload: packet.to_vec(), metadata });
        self.counts.to_cpu += 1;
        if self.events.try_send(event).is_err() {
            self.counts.lost += 1;
        }
    }

    /// Processes a packet-out.
    pub(super) fn sent(&mut self, packet: &Packet, params: &[Param]) -> Result<(), Refused> {
        if packet.payload.is_empty() {
            return Err(Refused::Invalid("a packet without bytes".to_owned()));
        }
        let id = params.iter().find(|param| param.name == PORT).map(|param| param.id);
        let said = packet.metadata.iter().find(|(one, _)| Some(*one) == id);
        let port = said.map_or(Ok(self.cpu_port), |(_, value)| port_of(value))?;
        // No other ports are connected: packets that leave on them are only counted.
        self.packet(port, &packet.payload, None).map(drop)
    }
}

fn port_of(value: &Bits) -> Result<u32, Refused> {
    let number = value
        .iter()
        .try_fold(0_u32, |all, byte| all.checked_mul(256).map(|all| all | u32::from(*byte)));
    number.ok_or_else(|| Refused::Invalid(format!("`{PORT}` is more than 32 bits")))
}
