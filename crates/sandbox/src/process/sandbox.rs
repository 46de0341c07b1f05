//! The switch's handle of a tenant's program in a sandbox process.

mod control;
mod digests;
mod failure;
mod types;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use p4_object::Map;
use sandbox_queue::{
    Accusation, Answer, Arena, Busy, FaultKind, Packet, PacketQueue, Reason, SwitchEnd,
};

use super::counters::Counters;
use super::deadlines::MAX_WAIT;
use super::error::StartError;
use super::isolation::Isolation;
use super::journal::Journal;
use super::peer::Peer;
use super::policy::Config;
use super::shared::{Owned, Shared};
use super::spawn::Launcher;
use super::vm_feed::{self, VmFeed};
use crate::program::Executor;
use digests::Digests;
pub use types::Status;

use failure::Failure;
pub(super) use failure::replay;

/// Polls without a verdict between two checks if the process has exited.
const LOOKS: u32 = 256;
/// Time to wait at the end for the start of a process.
const STARTING: Duration = Duration::from_secs(1);

/// State of the process.
#[derive(Debug)]
pub(super) enum State {
    Running(Box<Peer>),
    /// A restart is scheduled for this time.
    Waiting(Instant),
    /// Another thread is starting a process.
    Starting(Receiver<Result<Peer, StartError>>),
    /// The tenant is evicted and gets no further process.
    Evicted,
}

/// A tenant's program in a sandbox process. It is driven by its owner: all work is done inside its
/// methods.
#[derive(Debug)]
pub struct Sandbox {
    pub(super) launcher: Launcher,
    pub(super) config: Config,
    /// Values published by the tenant's VM.
    pub(super) vm: Option<VmFeed>,
    pub(super) object: Arc<[u8]>,
    pub(super) state: State,
    /// Dropped after `state`, so that the process no longer maps the arena when another sandbox
    /// takes it.
    pub(super) arena: Owned,
    /// Queue of the packets that the owner submits.
    pub(super) queue: PacketQueue,
    /// Number of starts and ends of processes.
    epoch: u64,
    pub(super) counters: Counters,
    failures: VecDeque<Instant>,
    pub(super) journal: Arc<Journal>,
    pub(super) maps: Vec<Map>,
    digests: Digests,
    pub(super) version: u64,
    /// Time for which processes have handled requests of a control plane.
    pub(super) busy: Duration,
    /// Begins of the requests since the oldest packet in flight was published, and `busy` by then.
    pub(super) requests: VecDeque<(Instant, Duration)>,
    /// Time at which a process in the background was given another deadline.
    excused: Option<Instant>,
    looks: u32,
    last_failure: Option<String>,
    /// Reason that packets in flight got no verdict when the last process ended.
    pub(super) last_end: Reason,
    executor: Executor,
    isolation: Isolation,
}

impl Sandbox {
    /// Starts a process that runs a program, given as an object for `p4_object::read`. Blocks
    /// until it is compiled.
    ///
    /// # Errors
    ///
    /// Fails if the process does not start, lacks isolation required by [`Config::requires`], or
    /// rejects the program; if another sandbox owns the arena; or if the program reads values of
    /// the tenant's VM.
    pub fn start(
        launcher: Launcher,
        config: Config,
        arena: Arc<Arena>,
        object: &[u8],
    ) -> Result<Self, StartError> {
        Self::start_with(launcher, config, arena, object, None)
    }

    /// Like [`Sandbox::start`], for a tenant with a VM that may publish values.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::start`]; also fails if the VM is publishing, but not all of the keys that the
    /// program reads.
    pub fn start_with(
        launcher: Launcher,
        config: Config,
        arena: Arc<Arena>,
        object: &[u8],
        vm: Option<VmFeed>,
    ) -> Result<Self, StartError> {
        let places = config.places.clamp(1, 1 << 20).next_power_of_two();
        let config = Config { places, ..config };
        let arena = Owned::take(arena).ok_or(StartError::ArenaTaken)?;
        let mut peer = Peer::start(&launcher, &config, &arena, object, vm.as_ref())?;
        vm_feed::check(vm.as_ref(), &peer.keys)?;
        let mut queue = PacketQueue::new(&arena, 0, config.queues + 1, places, config.policy);
        queue.connect(peer.packets());
        Ok(Self {
            queue,
            epoch: 1,
            journal: Arc::new(Journal::new(&peer.maps, object)),
            maps: peer.maps.clone(),
            digests: Digests::new(&config, &peer.digests),
            executor: peer.executor,
            isolation: peer.isolation,
            launcher,
            config,
            arena,
            vm,
            object: object.into(),
            state: State::Running(Box::new(peer)),
            counters: Counters::default(),
            failures: VecDeque::new(),
            version: 1,
            busy: Duration::ZERO,
            requests: VecDeque::new(),
            excused: None,
            looks: 0,
            last_failure: None,
            last_end: Reason::Restarting,
        })
    }

    /// The packet arena.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Frames of the arena that belong to the sandbox's own queue.
    pub fn frames(&self) -> Range<u32> {
        self.queue.frames()
    }

    /// Current counters.
    pub fn counters(&self) -> Counters {
        Counters { packets: *self.queue.counters(), ..self.counters }
    }

    /// Number of starts and ends of processes: after a change, queues of [`Sandbox::shared`] belong
    /// to another process.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Reason that packets in flight got no verdict when the last process ended;
    /// [`Reason::Restarting`] if none has.
    pub fn last_end(&self) -> Reason {
        self.last_end
    }

    /// Memory of the running process, for [`Config::queues`] further queues.
    pub fn shared(&self) -> Option<Shared> {
        let State::Running(peer) = &self.state else { return None };
        Some(peer.shared(Arc::clone(&self.arena), &self.config))
    }

    /// Kills the process because another queue found it in violation of the protocol, or late. A
    /// process is not late, for some seconds, while it is busy with a request of the control plane, or
    /// waits for a CPU that others use: call this again after each deadline.
    pub fn accuse(&mut self, queue: u32, of: Accusation) {
        match of {
            Accusation::Violation(violation) => self.fail(Failure::ProtocolViolation(violation)),
            Accusation::Late => {
                if let State::Running(peer) = &mut self.state
                    && peer.is_late(queue, self.config.deadline, self.busy)
                {
                    self.fail(Failure::Slow);
                }
            }
        }
    }

    /// Waits, for a second, for a process that is being started again: its control group would stay if
    /// this program ended meanwhile. Call this at the end.
    pub fn await_start(&self) {
        if let State::Starting(result) = &self.state {
            let _ = result.recv_timeout(STARTING);
        }
    }

    /// Current status.
    pub fn status(&self) -> Status {
        Status {
            process: match &self.state {
                State::Running(peer) => Some(peer.id()),
                _ => None,
            },
            is_evicted: matches!(self.state, State::Evicted),
            version: self.version,
            executor: self.executor,
            is_hosted: self.is_hosted(),
            isolation: self.isolation,
            lacks: self.isolation.lacks(self.config.expects()),
            last_failure: self.last_failure.clone(),
        }
    }

    /// Returns true if the program runs in a process that hosts it.
    pub fn is_hosted(&self) -> bool {
        matches!(&self.state, State::Running(peer) if peer.is_hosted())
    }

    /// Number of packets in flight, without answers that have not been fetched.
    pub fn flying(&self) -> usize {
        self.queue.flying()
    }

    /// Submits a packet. The program may write to its frame until there is an answer. The process
    /// does not see it before [`Sandbox::flush`].
    ///
    /// # Errors
    ///
    /// As [`PacketQueue::submit`].
    pub fn submit(&mut self, packet: Packet) -> Result<(), Busy> {
        self.queue.submit(packet)
    }

    /// Publishes submitted packets and wakes the process if it sleeps.
    pub fn flush(&mut self) {
        self.queue.flush();
    }

    /// Takes available answers; each packet has exactly one. Call this often: it also enforces
    /// deadlines and restarts processes.
    pub fn poll(&mut self, answers: &mut Vec<Answer>) {
        match &self.state {
            State::Running(_) => self.collect(),
            State::Evicted => {}
            State::Waiting(_) | State::Starting(_) => self.revive(),
        }
        self.queue.take_all(answers);
    }

    /// Like [`Sandbox::poll`], but waits for an answer: spins, then sleeps. Returns without one on
    /// timeout, or if no packets are in flight.
    pub fn wait(&mut self, answers: &mut Vec<Answer>, most: Duration) {
        let begin = Instant::now();
        loop {
            self.poll(answers);
            let past = begin.elapsed();
            if !answers.is_empty() || self.queue.flying() == 0 || past >= most {
                return;
            }
            if past < self.config.spin {
                std::hint::spin_loop();
                continue;
            }
            let State::Running(peer) = &self.state else { continue };
            if self.queue.rings().is_some_and(SwitchEnd::ask) {
                let time = (most - past).min(self.config.deadline).min(Duration::from_millis(10));
                let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::ZERO);
                // A signal or a timeout: the next poll finds out.
                let _ = poll(&mut [PollFd::new(peer.bell(), PollFlags::POLLIN)], time);
                peer.quiet();
            }
        }
    }

    /// Checks if the process has exited, and restarts it when its back-off has elapsed. `poll` does
    /// this as well; call this if there are no packets to poll for.
    pub fn look_after(&mut self) {
        self.check_end();
        self.revive();
    }

    /// Processes pending verdicts.
    pub(super) fn collect(&mut self) {
        let endless = self.queue.counters().fault(FaultKind::Meter);
        let new = match self.queue.collect() {
            Ok(new) => new,
            Err(violation) => return self.fail(Failure::ProtocolViolation(violation)),
        };
        if let State::Running(peer) = &mut self.state {
            peer.were_endless(self.queue.counters().fault(FaultKind::Meter) - endless);
        }
        if let Err(violation) = self.collect_digests() {
            return self.fail(Failure::ProtocolViolation(violation));
        }
        if new == 0 {
            self.looks += 1;
            if self.looks >= LOOKS {
                self.looks = 0;
                self.check_end();
            }
        }
        let Some(since) = self.queue.since() else {
            self.requests.clear();
            return;
        };
        while self.requests.pop_front_if(|(begin, _)| *begin < since).is_some() {}
        let busy = self.requests.front().map_or(self.busy, |(_, busy)| *busy);
        let busy = self.busy.saturating_sub(busy).min(MAX_WAIT);
        let since = self.excused.map_or(since, |excused| since.max(excused));
        if since.elapsed() > self.config.deadline + busy && !self.is_hosted() {
            if let State::Running(peer) = &mut self.state
                && peer.leave_background()
            {
                self.excused = Some(Instant::now());
                return;
            }
            self.fail(Failure::Slow);
        }
    }

    /// Replaces the current process, which is killed.
    pub(super) fn take_over(&mut self, peer: Box<Peer>) {
        self.adopt(peer);
        self.digests.clear();
        self.version += 1;
        self.counters.swaps += 1;
    }

    /// Makes this the current process for packets.
    pub(super) fn adopt(&mut self, mut peer: Box<Peer>) {
        self.epoch += 1;
        self.queue.connect(peer.packets());
        (self.executor, self.isolation) = (peer.executor, peer.isolation);
        self.maps.clone_from(&peer.maps);
        self.digests.begin(&peer.digests);
        self.state = State::Running(peer);
    }

    fn check_end(&mut self) {
        let State::Running(peer) = &mut self.state else { return };
        if let Some(status) = peer.ended() {
            self.fail(Failure::Ended(status));
        } else if peer.has_left() {
            self.leave();
        }
    }
}
