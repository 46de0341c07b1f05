//! The switch's handle of a tenant's program in a sandbox process.

mod control;
mod digests;
mod failure;
mod types;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use p4_object::Map;

use super::arena::{Arena, Owned};
use super::counters::Counters;
use super::error::StartError;
use super::flights::Flights;
use super::isolation::Isolation;
use super::journal::Journal;
use super::peer::Peer;
use super::policy::Config;
use super::rings::{Descriptor, Reply};
use super::spawn::Launcher;
use super::verdicts::{self, Said};
use super::vm_feed::{self, VmFeed};
use crate::outcome::FaultKind;
use crate::program::Executor;
use digests::Digests;
pub use failure::ProtocolViolation;
pub use types::{Answer, Busy, Decision, Packet, Reason, Status};

use failure::Failure;
pub(super) use failure::told_again;

/// Polls without a verdict between two checks if the process has exited.
const LOOKS: u32 = 256;

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
    pub(super) flights: Flights,
    /// Answers that have not been fetched.
    ready: VecDeque<Answer>,
    pub(super) counters: Counters,
    failures: VecDeque<Instant>,
    pub(super) journal: Journal,
    pub(super) maps: Vec<Map>,
    digests: Digests,
    pub(super) version: u64,
    /// The process handled a control request until this time, so deadlines start no earlier.
    pub(super) busy_until: Instant,
    looks: u32,
    last_failure: Option<String>,
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
        let peer = Peer::start(&launcher, &config, &arena, object, vm.as_ref())?;
        vm_feed::check(vm.as_ref(), &peer.keys)?;
        Ok(Self {
            flights: Flights::new(arena.frames(), places),
            journal: Journal::new(&peer.maps, object),
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
            ready: VecDeque::new(),
            counters: Counters::default(),
            failures: VecDeque::new(),
            version: 1,
            busy_until: Instant::now(),
            looks: 0,
            last_failure: None,
        })
    }

    /// The packet arena.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Current counters.
    pub fn counters(&self) -> Counters {
        self.counters
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
            isolation: self.isolation,
            last_failure: self.last_failure.clone(),
        }
    }

    /// Number of packets in flight, without answers that have not been fetched.
    pub fn flying(&self) -> usize {
        self.flights.len()
    }

    /// Submits a packet. The program may write to its frame until there is an answer. The process
    /// does not see it before [`Sandbox::flush`].
    ///
    /// # Errors
    ///
    /// Fails if the frame does not exist or does not contain the packet, if the frame is in flight,
    /// or if too many packets are in flight.
    pub fn submit(&mut self, packet: Packet) -> Result<(), Busy> {
        let Packet { slot, start, length, port, at } = packet;
        if start.checked_add(length).is_none_or(|end| end > self.arena.frame_size()) {
            return Err(Busy::NoPacket);
        }
        if !self.flights.is_free(slot) {
            return Err(if slot < self.arena.frames() { Busy::Flying } else { Busy::NoPacket });
        }
        // Unfetched answers count as well, which bounds the memory of the queue.
        if self.flights.len() + self.ready.len() >= self.config.places as usize {
            return Err(Busy::Full);
        }
        self.counters.submitted += 1;
        // 64 bits of nanoseconds are 584 years.
        let at_ns = at.map(|at| u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
        let packet = Descriptor { slot, generation: 0, start, length, port, at_ns };
        match &mut self.state {
            State::Running(peer) => peer.rings.put(self.flights.push(packet)),
            State::Evicted => self.answer_by_policy(packet, Reason::Evicted),
            _ => self.answer_by_policy(packet, Reason::Restarting),
        }
        Ok(())
    }

    /// Publishes submitted packets and wakes the process if it sleeps.
    pub fn flush(&mut self) {
        if let State::Running(peer) = &mut self.state
            && self.flights.len() > 0
        {
            self.flights.show(Instant::now());
            peer.rings.show();
        }
    }

    /// Takes available answers; each packet has exactly one. Call this often: it also enforces
    /// deadlines and restarts processes.
    pub fn poll(&mut self, answers: &mut Vec<Answer>) {
        match &self.state {
            State::Running(_) => self.collect(),
            State::Evicted => {}
            State::Waiting(_) | State::Starting(_) => self.revive(),
        }
        answers.extend(self.ready.drain(..));
    }

    /// Like [`Sandbox::poll`], but waits for an answer: spins, then sleeps. Returns without one on
    /// timeout, or if no packets are in flight.
    pub fn wait(&mut self, answers: &mut Vec<Answer>, most: Duration) {
        let begin = Instant::now();
        loop {
            self.poll(answers);
            let past = begin.elapsed();
            if !answers.is_empty() || self.flights.len() == 0 || past >= most {
                return;
            }
            if past < self.config.spin {
                std::hint::spin_loop();
                continue;
            }
            let State::Running(peer) = &self.state else { continue };
            if peer.rings.ask() {
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
        let State::Running(peer) = &mut self.state else { return };
        let Some(new) = peer.rings.answered() else {
            return self.fail(Failure::ProtocolViolation(ProtocolViolation::Index));
        };
        for _ in 0..new {
            let State::Running(peer) = &mut self.state else { return };
            let reply = peer.rings.take();
            if let Err(violation) = self.judge(reply) {
                return self.fail(Failure::ProtocolViolation(violation));
            }
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
        if let Some(since) = self.flights.since() {
            let since = since.max(self.busy_until);
            if since.elapsed() > self.config.deadline {
                self.fail(Failure::Slow);
            }
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
    fn adopt(&mut self, peer: Box<Peer>) {
        (self.executor, self.isolation) = (peer.executor, peer.isolation);
        self.maps.clone_from(&peer.maps);
        self.digests.begin(&peer.digests);
        self.state = State::Running(peer);
    }

    fn check_end(&mut self) {
        if let State::Running(peer) = &mut self.state
            && let Some(status) = peer.ended()
        {
            self.fail(Failure::Ended(status));
        }
    }

    /// Validates and processes a verdict for the oldest packet.
    fn judge(&mut self, reply: Reply) -> Result<(), ProtocolViolation> {
        let packet = *self.flights.front().ok_or(ProtocolViolation::Index)?;
        if reply.slot != packet.slot {
            return Err(ProtocolViolation::Slot);
        }
        if reply.generation != packet.generation {
            return Err(ProtocolViolation::Generation);
        }
        let end = reply.start.checked_add(reply.length);
        if end.is_none_or(|end| end > self.arena.frame_size()) {
            return Err(ProtocolViolation::Length);
        }
        if reply.has_clone > 1 {
            return Err(ProtocolViolation::Verdict);
        }
        let said = verdicts::said(reply.verdict, reply.port).ok_or(ProtocolViolation::Verdict)?;
        self.flights.pop();
        let moved = Descriptor { start: reply.start, length: reply.length, ..packet };
        let counters = &mut self.counters;
        let decision = match said {
            Said::Abort => {
                self.answer_by_policy(moved, Reason::Aborted);
                return Ok(());
            }
            Said::Fault(kind) => {
                if let (FaultKind::Meter, State::Running(peer)) = (kind, &mut self.state) {
                    peer.was_endless();
                }
                self.answer_by_policy(moved, Reason::Fault(kind));
                return Ok(());
            }
            Said::Drop => {
                counters.dropped += 1;
                Decision::Drop
            }
            Said::Pass => {
                counters.passed += 1;
                Decision::Pass
            }
            Said::Redirect(port) => {
                counters.redirected += 1;
                Decision::Redirect(port)
            }
        };
        let clone = (reply.has_clone == 1).then_some(reply.clone_port);
        counters.cloned += u64::from(clone.is_some());
        self.ready.push_back(Answer {
            slot: packet.slot,
            start: reply.start,
            length: reply.length,
            decision,
            clone,
            reason: Reason::Program,
        });
        Ok(())
    }
}
