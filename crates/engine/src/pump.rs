//! The engine's one loop.

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

/// The number of the bell among what is waited for; sockets have theirs.
const BELL: u64 = u64::MAX;
/// Descriptors that one wait tells of.
const READY: usize = 64;

/// Turns of nodes and links between two looks at the clock, while there is more to do.
const SLICE: usize = 256;
/// How long packets keep it from everything else.
const TURN: Nanos = 20_000_000;
/// Cross traffic that is later than that is not sent any more: with it everything else would be later and later.
const OVERDUE: Nanos = 100_000_000;
/// How often the log says so.
const SAYING: Nanos = 10_000_000_000;

/// So long before a deadline at most it stops sleeping and looks at the clock: timers are late by less.
const SPIN: Nanos = 300_000;

/// A network between interfaces.
pub struct Engine {
    network: Network,
    edges: Vec<Edge>,
    inbox: Inbox,
    epoll: Epoll,
    timers: Timers,
    priority: Priority,
    /// How many packets have come since it slept.
    came: usize,
    /// Packets that follow each other.
    run: Run,
    /// How far the network's time has come.
    reached: Nanos,
    /// When it looks at everything else, whatever is still due.
    turn_ends: Nanos,
    /// When the log has said last that it cannot keep up.
    said: Option<Nanos>,
}

impl Engine {
    /// The network, with a gate for each of its ports. It ends when the last [`Remote`] has gone.
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
        let edges = gates.into_iter().map(|(port, gate)| Edge::new(port, gate)).collect();
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

    /// Runs until nobody has a [`Remote`] any more, and gives the network back.
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
                        // One batch: then the others have their turn.
                        gate.receive(|at, packet| came.push((at, *port, packet)))?;
                    }
                }
            }
            // In the order in which they came to this machine.
            came.sort_by_key(|(at, ..)| *at);
            self.came += came.len();
            let takes_runs = self.edges.iter().all(|edge| edge.gate.takes_runs());
            let mut came = came.drain(..).peekable();
            while let Some((mut at, port, mut packet)) = came.next() {
                if takes_runs && self.network.is_clear(port) {
                    // Most of what a packet takes that nothing happens to is the kernel's way out.
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
                // What happens before comes first; what has happened stays.
                let at = at.max(self.reached);
                self.pass_time(at, &numbers)?;
                let at = self.present(at);
                self.network.receive(at, port, packet);
                self.reached = at;
            }
        }
    }

    /// The edge of each port, by the port's number.
    fn numbers(&self) -> std::collections::HashMap<PortId, usize> {
        self.edges.iter().enumerate().map(|(number, edge)| (edge.port, number)).collect()
    }

    /// A moment, or the first one that the network has not come to.
    fn present(&self, at: Nanos) -> Nanos {
        self.network.next().map_or(at, |next| next.min(at)).max(self.reached)
    }

    /// Does without cross traffic for which there was no time.
    fn keep_up(&mut self, now: Nanos) {
        if self.network.next().is_none_or(|next| next + OVERDUE >= now) {
            return;
        }
        self.network.skip_cross(now);
        if self.said.is_none_or(|said| said + SAYING < now) {
            self.said = Some(now);
            tracing::warn!("there is no time for all packets: overdue cross traffic is left out");
        }
    }

    /// Lets everything happen that is due, as far as there is time, and puts out what leaves.
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

    /// Sleeps until a packet comes or a deadline is near; near one it does not sleep.
    fn wait(&mut self, ready: &mut [EpollEvent]) -> Result<usize, Error> {
        let now = clock::now();
        // A router that asks for its neighbours again need not be exact: packets on their way are to.
        self.priority.follow(now, std::mem::take(&mut self.came), self.network.memory() > 0);
        let left = self.network.next().map(|next| next.saturating_sub(now));
        let sleep = left.map(|left| self.timers.sleep(left));
        let count = match wait_for(&self.epoll, ready, sleep) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(source) => return Err(Error::Refused { doing: "wait for packets", source }),
        };
        if let (0, Some(left), Some(sleep)) = (count, left, sleep.filter(|sleep| *sleep > 0)) {
            self.timers.learn(left, clock::now().saturating_sub(now + sleep));
        }
        Ok(count)
    }

    /// Does what it was told. Returns whether somebody is still there to tell it more.
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

/// epoll_pwait2(2): its timeout is exact to the nanosecond; none waits for ever.
fn wait_for(epoll: &Epoll, ready: &mut [EpollEvent], timeout: Option<Nanos>) -> nix::Result<usize> {
    use std::os::fd::AsRawFd as _;
    let timeout = timeout.map(|left| libc::timespec {
        tv_sec: (left / 1_000_000_000) as _,
        tv_nsec: (left % 1_000_000_000) as _,
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `ready` is an array of epoll_event (EpollEvent is one, transparently) of the length
    // given, and the timeout lives until the call returns.
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
