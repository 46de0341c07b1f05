//! A tenant's program: its process, and its packet queues.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use p4runtime::{Alone, Health, Plane, Processes, Queues, Running as _, Sandboxed};
use sandbox::process::{Accusation, Host, Launcher, Reason, Sandbox, Shared, StartError};
use xsk_link::{Attach, Direction, Error, Link, Order};

use crate::tenant::Tenant;

/// Number of frames of a queue, and capacity of its rings; a power of two.
const FRAMES: u32 = 512;
/// Size of a frame in bytes: a page of packet with space for headers before and after it.
const FRAME_SIZE: u32 = 4096 + 2 * 1024;
/// Time for which a replaced process may finish its packets, beyond their deadline.
const FAREWELL: Duration = Duration::from_secs(1);

/// A process, identified by the program's sequence number and the process's epoch.
pub(crate) type Incarnation = (u64, u64);

/// A tenant's program.
///
/// The state of its process is that of the last [look](Program::look): a request of a control plane
/// may use the program for seconds, and the daemon does not wait for it.
pub(crate) struct Program {
    pub(crate) tenant: Tenant,
    plane: Plane<Alone>,
    /// Replaced programs whose queues may have packets in flight.
    retired: Receiver<Sandbox>,
    leaving: Vec<(Sandbox, Instant)>,
    /// Queues in use, a bit each; number 0 is the plane's own.
    used: u32,
    /// The process that the attachments refer to.
    pub(crate) seen: Incarnation,
    pub(crate) health: Health,
    /// Memory of the last process; `None` if there has been none.
    shared: Option<Shared>,
    /// Accusations that wait for the control plane's request.
    accusations: Vec<(u32, Accusation)>,
    /// The client's process that hosts the program, if one does.
    host: Option<Hosting>,
    /// Reasons that the last process has left for packets in flight, and for later ones.
    pub(crate) without_verdict: (Reason, Reason),
}

impl Drop for Program {
    fn drop(&mut self) {
        // The device's thread holds it too, and may run past the command's last line.
        self.plane.end();
    }
}

impl Program {
    /// Creates a program, and the device that control planes program.
    pub(crate) fn new(tenant: Tenant, launcher: Launcher) -> (Self, Sandboxed<Processes>) {
        let (sender, retired) = channel();
        let queues = Queues { frames: FRAMES, frame_size: FRAME_SIZE, retired: sender };
        let config = sandbox::process::Config { places: FRAMES, ..tenant.config };
        let vm = tenant.vm.clone();
        let processes = Processes { launcher, config, vm, queues: Some(queues) };
        let (device, plane) = Sandboxed::new(processes, p4runtime::CPU_PORT);
        (
            Self {
                tenant,
                plane,
                retired,
                leaving: Vec::new(),
                used: 1,
                seen: (0, 0),
                health: Health::default(),
                shared: None,
                accusations: Vec::new(),
                host: None,
                without_verdict: (Reason::Restarting, Reason::Restarting),
            },
            device,
        )
    }

    /// Number of the port with this interface.
    pub(crate) fn port(&self, interface: &str) -> Option<u32> {
        let mut ports = self.tenant.ports.iter();
        ports.find(|port| port.interface == interface).map(|port| port.number)
    }

    /// Takes a free queue without packets in flight.
    pub(crate) fn take_queue(&mut self) -> Option<u32> {
        let rings = self.shared.as_ref()?.map().ok()?;
        let is_free = |queue: &u32| self.used & 1 << queue == 0 && rings.is_quiet(*queue);
        let free = (1..=self.tenant.config.queues).find(is_free)?;
        self.used |= 1 << free;
        Some(free)
    }

    /// Returns a queue.
    pub(crate) fn free_queue(&mut self, queue: u32) {
        self.used &= !(1 << queue);
    }

    /// Looks after the process: restarts it, forwards its digests, judges accusations, and lets
    /// replaced ones end. Returns its identity if it is another one than before.
    pub(crate) fn look(&mut self) -> Option<Incarnation> {
        let end = Instant::now() + FAREWELL + self.tenant.config.deadline;
        self.leaving.extend(self.retired.try_iter().map(|sandbox| (sandbox, end)));
        self.leaving.retain(|(_, end)| Instant::now() < *end);
        let Self { plane, accusations, shared, without_verdict, health, .. } = self;
        let now = plane.look(|installed, alone| {
            let Some(alone) = alone else {
                *health = Health::default();
                return (installed.number, 0);
            };
            let sandbox = alone.sandbox();
            accusations.drain(..).for_each(|(queue, of)| sandbox.accuse(queue, of));
            *health = alone.health();
            let sandbox = alone.sandbox();
            *without_verdict = (sandbox.last_end(), sandbox.without_process());
            *shared = sandbox.shared().or(shared.take());
            (installed.number, sandbox.epoch())
        })?;
        let is_new = now != self.seen;
        self.seen = now;
        is_new.then_some(now)
    }

    /// Returns true if a process has run the program.
    pub(crate) fn has_run(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns true if a process runs the program.
    fn is_running(&self) -> bool {
        self.health.process.is_some()
    }

    /// Ends the replaced processes: none has packets in flight.
    pub(crate) fn all_drained(&mut self) {
        self.leaving.clear();
    }

    /// Sends an order to attach the program. Returns its process, if one is running. Without one, the
    /// policy decides about the packets. There must have been one ([`Program::take_queue`]).
    pub(crate) fn attach(
        &self,
        session: u64,
        link: &Link,
        to: &Attached,
    ) -> Result<Option<Incarnation>, Error> {
        let Some(shared) = &self.shared else { return Ok(None) };
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let host = self.host.filter(|host| host.session == session && self.health.is_hosted);
        let order = Attach {
            socket: to.socket,
            direction: to.direction,
            attachment: to.attachment,
            port: to.port,
            deadline_us: micros(self.tenant.config.deadline),
            hold_us: micros(self.tenant.hold),
            policy: shared.policy,
            number: to.queue,
            queues: shared.queues,
            places: shared.places,
            frames: shared.arena.frames(),
            frame_size: shared.arena.frame_size(),
            host: host.map(|host| host.number),
        };
        let files = [shared.rings.as_raw_fd(), shared.arena.file().as_raw_fd()];
        link.send(&Order::Attach(order), &files)?;
        if self.is_running() {
            return Ok(Some(self.seen));
        }
        let (flying, later) = self.without_verdict;
        link.send(&Order::Ended { attachment: to.attachment, flying, later }, &[])?;
        Ok(None)
    }

    /// Returns true if the program is to move to the client's process.
    pub(crate) fn wants_host(&self) -> bool {
        let has_failed = self.host.is_some_and(|host| host.failed == Some(self.seen.0));
        self.tenant.is_inline && self.is_running() && !self.health.is_hosted && !has_failed
    }

    /// Moves the program to a process of the client, unless a control plane uses it. After an error,
    /// it stays in its own process, and does not [want](Self::wants_host) a host until it is
    /// replaced. Returns true if it has moved.
    pub(crate) fn move_to(&mut self, host: ClientHost) -> Result<bool, StartError> {
        let hosting = Hosting { session: host.session, number: host.number, failed: None };
        let launcher = Launcher::hosted(Arc::new(host));
        let moved = self.plane.look(|installed, alone| {
            (installed.number, alone.map(|alone| alone.sandbox().move_to(&launcher)))
        });
        let Some((number, Some(moved))) = moved else { return Ok(false) };
        let failed = moved.is_err().then_some(number);
        self.host = Some(Hosting { failed, ..hosting });
        moved.map(|()| true)
    }

    /// Judges a process that the library has accused because of one of its queues, at the next look.
    pub(crate) fn accuse(&mut self, queue: u32, accusation: Accusation) {
        let is_known = |one: &(u32, Accusation)| *one == (queue, accusation);
        if !self.accusations.iter().any(is_known) {
            self.accusations.push((queue, accusation));
        }
    }
}

/// Process of the client that hosts a program.
#[derive(Debug, Clone, Copy)]
struct Hosting {
    session: u64,
    /// Number of the program on the session's link.
    number: u64,
    /// Program that could not be moved.
    failed: Option<u64>,
}

/// A process of the client, as a host of a program.
#[derive(Debug)]
pub(crate) struct ClientHost {
    pub(crate) session: u64,
    pub(crate) link: Arc<Link>,
    pub(crate) process: u32,
    /// Number of the program on the link.
    pub(crate) number: u64,
}

impl Host for ClientHost {
    fn start(&self, control: OwnedFd, bell: OwnedFd) -> io::Result<()> {
        let files = [control.as_raw_fd(), bell.as_raw_fd()];
        let order = Order::Host { program: self.number };
        self.link.send(&order, &files).map_err(io::Error::other)
    }

    fn process(&self) -> u32 {
        self.process
    }
}

/// A program attached to one direction of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attached {
    pub(crate) socket: u32,
    pub(crate) direction: Direction,
    /// Number of the attachment, unique on its link.
    pub(crate) attachment: u64,
    /// Index of the program.
    pub(crate) program: usize,
    pub(crate) port: u32,
    pub(crate) queue: u32,
    /// True if it has been detached, and is only drained.
    pub(crate) is_detached: bool,
    /// Process whose queue the library has, if that is running.
    pub(crate) incarnation: Option<Incarnation>,
}
