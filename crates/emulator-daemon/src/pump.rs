//! The pump's main loop.

use std::os::fd::AsFd as _;
use std::sync::mpsc::TryRecvError;

use emulator::{Nanos, Network, Packet, PortId, Run};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use crate::edge::Edge;
use crate::priority::{self, Priority};
use crate::remote::{Inbox, Remote, pair};
use crate::timers::Timers;
use crate::{Error, Gate, clock};

/// Epoll data of the eventfd; sockets use the index of their edge.
const BELL: u64 = u64::MAX;
/// Maximum number of descriptors reported per wait.
const READY: usize = 64;

/// Maximum number of network events between two readings of the clock.
const SLICE: usize = 256;
/// Maximum time for packets before the pump handles other work.
const TURN: Nanos = 20_000_000;
/// Cross traffic later than this is skipped, because otherwise everything else would become later
/// and later.
const OVERDUE: Nanos = 100_000_000;
/// Interval of the log message about that.
const SAYING: Nanos = 10_000_000_000;

/// Maximum time before a deadline from which the pump polls instead of sleeping: timers are late
/// by less.
const SPIN: Nanos = 300_000;

/// A network between interfaces.
pub struct Pump {
    network: Network,
    edges: Vec<Edge>,
    inbox: Inbox,
    epoll: Epoll,
    timers: Timers,
    priority: Priority,
    /// Packets received since the last sleep.
    came: usize,
    /// Batch of consecutive packets.
    run: Run,
    /// Time that the network has reached.
    reached: Nanos,
    /// Time at which the pump handles other work, even if events are still due.
    turn_ends: Nanos,
    /// Time of the last log message about overload.
    said: Option<Nanos>,
}

impl Pump {
    /// Creates the pump for a network, with a gate for each port. It ends when the last
    /// [`Remote`] is dropped.
    pub fn new(network: Network, gates: Vec<(PortId, Gate)>) -> Result<(Self, Remote), Error> {
        let (remote, inbox) = pair()?;
        let refused = |source| Error::Refused { doing: "wait for packets", source };
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(refused)?;
        let on = |number| EpollEvent::new(EpollFlags::EPOLLIN, number);
        epoll.add(inbox.bell.as_fd(), on(BELL)).map_err(refused)?;
        for (number, (_, gate)) in (0..).zip(&gates) {
            for descriptor in gate.descriptors() {
                epoll.add(descriptor, on(number)).map_err(refused)?;
            }
        }
        let edge = |(port, mut gate): (PortId, Gate)| {
            gate.limit_batches(network.copies(port));
            Edge::new(port, gate)
        };
        let edges = gates.into_iter().map(edge).collect();
        let (timers, priority) = (Timers::new(SPIN), Priority::new());
        Ok((
            Self {
                network,
                edges,
                inbox,
                epoll,
                timers,
                priority,
                came: 0,
                run: Run::default(),
                reached: 0,
                turn_ends: 0,
                said: None,
            },
            remote,
        ))
    }

    /// Runs until the last [`Remote`] is dropped, and returns the network.
    pub fn run(mut self) -> Result<Network, Error> {
        priority::end_slack();
        let now = clock::now();
        self.network.begin(now, now);
        let numbers = self.numbers();
        let mut ready = [EpollEvent::empty(); READY];
        let mut came: Vec<(Nanos, PortId, Packet)> = Vec::new();
        loop {
            let now = clock::now();
            self.turn_ends = now + TURN;
            self.pass_time(now, &numbers)?;
            self.keep_up(now);
            let count = self.wait(&mut ready)?;
            for event in &ready[..count] {
                match event.data() {
                    BELL => {
                        if !self.do_jobs() {
                            return Ok(self.network);
                        }
                    }
                    number => {
                        let Edge { port, gate, .. } = &mut self.edges[number as usize];
                        // Receive only one batch, so that every gate gets its turn.
                        gate.receive(|at, packet| came.push((at, *port, packet)))?;
                    }
                }
            }
            // Process the packets in the order in which the machine received them.
            came.sort_by_key(|(at, ..)| *at);
            self.came += came.len();
            let takes_runs = self.edges.iter().all(|edge| edge.gate.takes_runs());
            let mut came = came.drain(..).peekable();
            while let Some((mut at, port, mut packet)) = came.next() {
                if takes_runs && self.network.is_clear(port) {
                    // On an unimpaired path, most of the cost of a packet is the kernel's transmit
                    // path.
                    self.run.begin(packet);
                    while let Some((later, _, next)) =
                        came.next_if(|(_, by, next)| *by == port && self.run.goes_on_with(next))
                    {
                        self.run.add(next);
                        at = later;
                    }
                    let Some(joined) = self.run.end() else { continue };
                    packet = joined;
                }
                // Process earlier events first. Time never goes backwards.
                let at = at.max(self.reached);
                self.pass_time(at, &numbers)?;
                let at = self.present(at);
                self.network.receive(at, port, packet);
                self.reached = at;
            }
        }
    }

    /// Returns the index of each port's edge.
    fn numbers(&self) -> std::collections::HashMap<PortId, usize> {
        self.edges.iter().enumerate().map(|(number, edge)| (edge.port, number)).collect()
    }

    /// Limits a time to the range that the network has not passed yet.
    fn present(&self, at: Nanos) -> Nanos {
        self.network.next().map_or(at, |next| next.min(at)).max(self.reached)
    }

    /// Skips overdue cross traffic if the pump cannot keep up.
    fn keep_up(&mut self, now: Nanos) {
        if self.network.next().is_none_or(|next| next + OVERDUE >= now) {
            return;
        }
        self.network.skip_cross(now);
        if self.said.is_none_or(|said| said + SAYING < now) {
            self.said = Some(now);
            tracing::warn!(
                "the emulator cannot keep up with all packets: overdue cross traffic is skipped"
            );
        }
    }

    /// Processes due events within the time limit, and sends the packets that leave.
    fn pass_time(
        &mut self,
        now: Nanos,
        numbers: &std::collections::HashMap<PortId, usize>,
    ) -> Result<(), Error> {
        let Self { network, edges, reached, .. } = self;
        if network.next().is_none_or(|next| next > now) {
            return Ok(());
        }
        loop {
            let is_all = network.advance_some(now, SLICE, &mut |port, at, packet| {
                *reached = at.max(*reached);
                if let Some(number) = numbers.get(&port) {
                    edges[*number].push(at, packet);
                }
            });
            edges.iter_mut().try_for_each(Edge::put_out)?;
            if is_all || clock::now() >= self.turn_ends {
                return Ok(());
            }
        }
    }

    /// Sleeps until a packet arrives or a deadline is near. Does not sleep if a deadline is near
    /// already.
    fn wait(&mut self, ready: &mut [EpollEvent]) -> Result<usize, Error> {
        let now = clock::now();
        // Only packets in flight need exact timing; retransmitted solicitations do not.
        self.priority.follow(now, std::mem::take(&mut self.came), self.network.memory() > 0);
        let left = self.network.next().map(|next| next.saturating_sub(now));
        let sleep = left.map(|left| self.timers.sleep(left));
        let count = match wait_for(&self.epoll, ready, sleep) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(source) => return Err(Error::Refused { doing: "wait for packets", source }),
        };
        if let (0, Some(left), Some(sleep)) = (count, left, sleep.filter(|sleep| *sleep > 0)) {
            self.timers.record(left, clock::now().saturating_sub(now + sleep));
        }
        Ok(count)
    }

    /// Runs the pending jobs. Returns false if all [`Remote`]s have been dropped.
    fn do_jobs(&mut self) -> bool {
        let _ = self.inbox.bell.read();
        loop {
            match self.inbox.jobs.try_recv() {
                Ok(job) => {
                    let now = self.present(clock::now());
                    job(&mut self.network, &self.edges, now);
                    self.reached = now;
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }
}

/// epoll_pwait2(2), which has a timeout with nanosecond resolution. `None` waits indefinitely.
fn wait_for(epoll: &Epoll, ready: &mut [EpollEvent], timeout: Option<Nanos>) -> nix::Result<usize> {
    use std::os::fd::AsRawFd as _;
    let timeout = timeout.map(|left| libc::timespec {
        tv_sec: (left / 1_000_000_000) as _,
        tv_nsec: (left % 1_000_000_000) as _,
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `ready` is an array of epoll_event (EpollEvent is a transparent wrapper) of the given
    // length, and the timeout outlives the call.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.0.as_raw_fd(),
            ready.as_mut_ptr(),
            ready.len() as libc::c_int,
            timeout,
            std::ptr::null::<libc::sigset_t>(),
            0_usize,
        )
    };
    Errno::result(count).map(|count| count as usize)
}
