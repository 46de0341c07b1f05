//! Packets on their way through the program at work.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use p4::object::Object;
use sandbox::process::Isolation;
use sandbox::{Digest, Maps};
use tokio::sync::mpsc;

use super::layouts::DigestAt;
use crate::device::{Event, Packet, Refused};
use crate::pipeline::Param;
use crate::values::{self, Bits};

/// What a control plane's packets have as their port, if nobody says another one.
pub const CPU_PORT: u32 = 255;

/// The metadata of packets by which their port is told.
const PORT: &str = "ingress_port";

/// Room in front of a packet, and behind it, in bytes.
pub(super) const ROOM: usize = 1024;

/// Packets for the control plane that wait.
const WAITING: usize = 1024;

/// A program that runs, wherever it does.
pub trait Running: Maps + Send + 'static {
    /// Runs it on a packet that came by a port, at the packet's own time or, without one, at the
    /// machine's.
    ///
    /// # Errors
    ///
    /// The packet cannot be given to it.
    fn run(&mut self, port: u32, packet: &[u8], at: Option<Duration>) -> Result<Ran, Refused>;

    /// Takes what it has for the control plane, oldest first.
    fn digests(&mut self) -> Vec<Digest>;

    /// How what runs it is, now. To be asked now and then: a process that has ended is seen here, and
    /// another is started in its place.
    fn health(&mut self) -> Health;
}

/// How what runs a program is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// The process that runs it, if it has one of its own.
    pub process: Option<u32>,
    /// Processes that ended, were too slow or lied.
    pub failures: u64,
    /// Whether it failed so often, or so badly, that no other process is started.
    pub is_evicted: bool,
    /// Why the last process had to go.
    pub last_failure: Option<String>,
    /// The parts of the process's isolation.
    pub isolation: Isolation,
}

/// Which program is at work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// How many there were, with this one: the first is 1, and 0 is none yet.
    pub number: u64,
    /// What it reads of its tenant's VM.
    pub vm_keys: Vec<String>,
}

/// What makes programs run.
pub trait Runner: Send + 'static {
    /// A program that does.
    type Running: Running;

    /// Checks an object and gets it ready. Its maps hold what it says.
    ///
    /// # Errors
    ///
    /// It is no program, or too much.
    fn load(&mut self, object: &Object) -> Result<Self::Running, Refused>;
}

/// What is to be done with a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The program could not go on, and says so itself.
    Abort,
    /// It is dropped.
    Drop,
    /// It goes on where it was going.
    Pass,
    /// It leaves by a port.
    Redirect(u32),
    /// There is no verdict of the program's, and why.
    Fault(String),
}

/// What came of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// What is to be done with it.
    pub verdict: Verdict,
    /// The port to which a copy goes as well.
    pub clone: Option<u32>,
    /// The packet as it is now.
    pub packet: Vec<u8>,
}

/// What became of packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each says what it is")]
pub struct Counts {
    pub passed: u64,
    pub redirected: u64,
    pub dropped: u64,
    pub aborted: u64,
    /// Without a verdict, since the program broke a limit for instance: they are dropped.
    pub faults: u64,
    pub cloned: u64,
    /// For the control plane, also of those above.
    pub to_cpu: u64,
    /// For the control plane, which did not take them.
    pub lost: u64,
    /// What programs had to tell the control plane.
    pub digests: u64,
    /// Of those, what it did not take.
    pub lost_digests: u64,
}

/// A packet that leaves, and the port by which.
pub type Leaving = (u32, Vec<u8>);

/// The program at work, and what is done with its packets.
pub(super) struct State<R> {
    pub(super) running: Option<R>,
    pub(super) program: Installed,
    /// What goes along with packets to the control plane.
    pub(super) packet_in: Vec<Param>,
    /// What the program tells, by its ids.
    pub(super) digests: BTreeMap<u32, DigestAt>,
    cpu_port: u32,
    events: mpsc::Sender<Event>,
    counts: Counts,
    last_fault: Option<String>,
}

/// Where packets enter. Clones are the same.
pub struct Plane<R>(Arc<Mutex<State<R>>>);

impl<R> Clone for Plane<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
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
        (Self(Arc::new(Mutex::new(state))), receiver)
    }

    /// Nothing that holds it panics half-way through a change: batches are all or nothing.
    pub(super) fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the program on a packet that came by a port. What leaves by other ports than the control
    /// plane's is given back; what passes leaves by the port that it came by.
    ///
    /// # Errors
    ///
    /// No program is at work, or it cannot have this packet.
    pub fn packet(
        &self,
        port: u32,
        packet: &[u8],
        at: Option<Duration>,
    ) -> Result<Vec<Leaving>, Refused> {
        self.lock().packet(port, packet, at)
    }

    /// What became of packets since the beginning.
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// Which program is at work.
    pub fn program(&self) -> Installed {
        self.lock().program.clone()
    }

    /// How the program at work is; none without one.
    pub fn health(&self) -> Option<Health> {
        self.lock().running.as_mut().map(Running::health)
    }

    /// Ends the program at work: its process is gone when this returns, whoever else has the plane.
    pub fn end(&self) {
        self.lock().running = None;
    }

    /// Why there was no verdict the last time that there was none.
    pub fn last_fault(&self) -> Option<String> {
        self.lock().last_fault.clone()
    }
}

impl<R: Running> State<R> {
    fn packet(
        &mut self,
        port: u32,
        packet: &[u8],
        at: Option<Duration>,
    ) -> Result<Vec<Leaving>, Refused> {
        let none = || Refused::Away("there is no program".to_owned());
        let running = self.running.as_mut().ok_or_else(none)?;
        let Ran { verdict, clone, packet } = running.run(port, packet, at)?;
        for digest in running.digests() {
            self.counts.digests += 1;
            let of = self.digests.get(&digest.id);
            let data =
                of.and_then(|of| Some(Event::Digest { id: of.id, data: of.data(&digest.data)? }));
            // Half of the room is left to packets, however much a program tells.
            let event = data.filter(|_| self.events.capacity() > WAITING / 2);
            if event.is_none_or(|event| self.events.try_send(event).is_err()) {
                self.counts.lost_digests += 1;
            }
        }
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

    /// A packet for the control plane.
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

    /// A packet of the control plane's.
    pub(super) fn sent(&mut self, packet: &Packet, params: &[Param]) -> Result<(), Refused> {
        if packet.payload.is_empty() {
            return Err(Refused::Invalid("a packet without bytes".to_owned()));
        }
        let id = params.iter().find(|param| param.name == PORT).map(|param| param.id);
        let said = packet.metadata.iter().find(|(one, _)| Some(*one) == id);
        let port = said.map_or(Ok(self.cpu_port), |(_, value)| port_of(value))?;
        // There is nobody at the other ports: what leaves by them is counted.
        self.packet(port, &packet.payload, None).map(drop)
    }
}

fn port_of(value: &Bits) -> Result<u32, Refused> {
    let number = value
        .iter()
        .try_fold(0_u32, |all, byte| all.checked_mul(256).map(|all| all | u32::from(*byte)));
    number.ok_or_else(|| Refused::Invalid(format!("`{PORT}` is more than 32 bits")))
}
