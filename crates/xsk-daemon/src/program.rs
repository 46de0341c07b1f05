//! A tenant's program: its process, and its packet queues.

use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use p4runtime::{Alone, Health, Plane, Processes, Queues, Running as _, Sandboxed};
use sandbox::process::{Accusation, Launcher, Reason, Sandbox, Shared, StartError};
use xsk_link::{Attach, ClientLink, Direction, Error, Order};

use crate::host::{ClientHost, Move, Place};
use crate::tenant::Tenant;

/// Number of frames of a queue, and capacity of its rings; a power of two.
const FRAMES: u32 = 512;
/// Size of a frame in bytes: a jumbo frame of 9 KiB with space for headers before and after it.
const FRAME_SIZE: u32 = 9 * 1024 + 1024;
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
    /// Accusations of the process `seen`, which the next look passes on.
    accusations: Vec<(u32, Accusation)>,
    /// The client's process that hosts the program, or was the last one to host it.
    host: Option<Place>,
    moving: Option<Move>,
    /// Sequence number of a program that could not be moved.
    unmovable: Option<u64>,
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
        let launcher = match &tenant.kernel {
            Some(kernel) => launcher.in_vm(kernel),
            None => launcher,
        };
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
                moving: None,
                unmovable: None,
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
        let Self { plane, accusations, shared, seen, without_verdict, health, .. } = self;
        let now = plane.try_with(|installed, alone| {
            let Some(alone) = alone else {
                accusations.clear();
                *health = Health::default();
                return (installed.number, 0);
            };
            let sandbox = alone.sandbox();
            let is_seen = *seen == (installed.number, sandbox.epoch());
            for (queue, of) in accusations.drain(..).filter(|_| is_seen) {
                sandbox.accuse(queue, of);
            }
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
        link: &ClientLink,
        to: &Attached,
    ) -> Result<Option<Incarnation>, Error> {
        let Some(shared) = &self.shared else { return Ok(None) };
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        // The end of the move may be known later than its result.
        let host = self.moving.as_ref().map(|one| one.to).or(self.host);
        let host = host.filter(|host| host.session == session && self.health.is_hosted);
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
            host: host.map(|host| host.program),
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

    /// Returns true if the program is to move to a process of the client.
    pub(crate) fn wants_host(&self) -> bool {
        let is_elsewhere = self.is_running() && !self.health.is_hosted;
        let may_move = self.moving.is_none() && self.unmovable != Some(self.seen.0);
        self.tenant.is_inline && is_elsewhere && may_move
    }

    /// Returns true unless the session has hosted this program before, and given it up.
    pub(crate) fn may_move_to(&self, session: u64) -> bool {
        let here = (session, self.seen.0);
        self.host.is_none_or(|last| (last.session, last.number) != here)
    }

    /// Begins to move the program to a process of the client.
    pub(crate) fn begin_move(&mut self, host: ClientHost) {
        // Without a thread, the next look tries it again.
        self.moving = Move::begin(self.plane.clone(), host, self.seen.0).ok();
    }

    /// Completes a move that is over. After an error, the program keeps its own process, and does not
    /// [want](Self::wants_host) another host until it is replaced, unless the host has ended
    /// (`is_alive`).
    pub(crate) fn complete_move(
        &mut self,
        is_alive: impl Fn(u64) -> bool,
    ) -> Result<(), StartError> {
        let Some(moved) = self.moving.as_ref().and_then(Move::result) else { return Ok(()) };
        let Some(Move { to, .. }) = self.moving.take() else { return Ok(()) };
        match moved {
            Ok(()) => self.host = Some(to),
            // It will be asked again for the new program.
            Err(StartError::Replaced) => {}
            Err(why) => {
                self.unmovable = is_alive(to.session).then_some(to.number);
                return Err(why);
            }
        }
        Ok(())
    }

    /// Judges a process that the library has accused because of one of its queues, at the next look.
    pub(crate) fn accuse(&mut self, queue: u32, accusation: Accusation) {
        let is_known = |one: &(u32, Accusation)| *one == (queue, accusation);
        if !self.accusations.iter().any(is_known) {
            self.accusations.push((queue, accusation));
        }
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
