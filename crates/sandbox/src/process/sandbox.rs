//! A tenant's program in a process of its own.

mod control;
mod digests;
mod failure;
mod types;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use p4::object::Map;

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
use crate::program::Engine;

use digests::Digests;
pub use failure::Lie;
pub use types::{Answer, Busy, Decision, Packet, Reason, Status};

use failure::Failure;
pub(super) use failure::told_again;

/// Looks without a verdict between two looks whether the process has ended.
const LOOKS: u32 = 256;

/// Whether there is a process.
#[derive(Debug)]
pub(super) enum State {
    Running(Box<Peer>),
    /// There will be one.
    Waiting(Instant),
    /// One is being started, by another thread.
    Starting(Receiver<Result<Peer, StartError>>),
    /// There will be none.
    Evicted,
}

/// A tenant's program in a process of its own. It is driven by its owner: nothing happens but in its
/// methods.
#[derive(Debug)]
pub struct Sandbox {
    pub(super) launcher: Launcher,
    pub(super) config: Config,
    /// What the tenant's VM publishes.
    pub(super) vm: Option<VmFeed>,
    pub(super) object: Arc<[u8]>,
    pub(super) state: State,
    /// After the process: nothing maps it when it is another's.
    pub(super) arena: Owned,
    pub(super) flights: Flights,
    /// Answers that nobody has fetched yet.
    ready: VecDeque<Answer>,
    pub(super) counters: Counters,
    failures: VecDeque<Instant>,
    pub(super) journal: Journal,
    pub(super) maps: Vec<Map>,
    digests: Digests,
    pub(super) version: u64,
    /// Before this time, the process had something else to do: no packet was late.
    pub(super) busy_until: Instant,
    looks: u32,
    last_failure: Option<String>,
    engine: Engine,
    isolation: Isolation,
}

impl Sandbox {
    /// Starts a process that runs a program (an object as `p4::object::read` has it). Takes as long as it
    /// takes to compile it.
    ///
    /// # Errors
    ///
    /// It does not start, is not isolated as [`Config::requires`] says, or cannot run this program; the
    /// arena is another sandbox's; a program that reads what the tenant's VM publishes
    /// cannot be run.
    pub fn start(
        launcher: Launcher,
        config: Config,
        arena: Arc<Arena>,
        object: &[u8],
    ) -> Result<Self, StartError> {
        Self::start_with(launcher, config, arena, object, None)
    }

    /// The same for a tenant whose VM may publish something.
    ///
    /// # Errors
    ///
    /// As above; and the program reads what the VM, which publishes, does not.
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
            engine: peer.engine,
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

    /// The packets' memory.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// What has been counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How it is.
    pub fn status(&self) -> Status {
        Status {
            process: match &self.state {
                State::Running(peer) => Some(peer.id()),
                _ => None,
            },
            is_evicted: matches!(self.state, State::Evicted),
            version: self.version,
            engine: self.engine,
            isolation: self.isolation,
            last_failure: self.last_failure.clone(),
        }
    }

    /// The number of packets on their way, those with answers that nobody has fetched not counted.
    pub fn flying(&self) -> usize {
        self.flights.len()
    }

    /// Gives a packet to the program, which may write to its frame until there is an answer. The process
    /// does not see it before [`Sandbox::flush`].
    ///
    /// # Errors
    ///
    /// There is no such packet, its frame is on its way already, or too many are.
    pub fn submit(&mut self, packet: Packet) -> Result<(), Busy> {
        let Packet { slot, start, length, port, at } = packet;
        if start.checked_add(length).is_none_or(|end| end > self.arena.frame_size()) {
            return Err(Busy::NoPacket);
        }
        if !self.flights.is_free(slot) {
            return Err(if slot < self.arena.frames() { Busy::Flying } else { Busy::NoPacket });
        }
        // Answers that are not fetched have a place as well: nobody's memory grows without end.
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

    /// Shows the process what has been submitted, and wakes it if it sleeps.
    pub fn flush(&mut self) {
        if let State::Running(peer) = &mut self.state
            && self.flights.len() > 0
        {
            self.flights.show(Instant::now());
            peer.rings.show();
        }
    }

    /// Fetches the answers that there are; each packet has exactly one. To be called often: it is here
    /// that deadlines are kept, and processes started again.
    pub fn poll(&mut self, answers: &mut Vec<Answer>) {
        match &self.state {
            State::Running(_) => self.collect(),
            State::Evicted => {}
            State::Waiting(_) | State::Starting(_) => self.revive(),
        }
        answers.extend(self.ready.drain(..));
    }

    /// The same, but waits for an answer: looks for a while, then sleeps. Returns without one when the
    /// time is over, or there is nothing to wait for.
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
                // A signal, or the time is over: the next look says what there is.
                let _ = poll(&mut [PollFd::new(peer.bell(), PollFlags::POLLIN)], time);
                peer.quiet();
            }
        }
    }

    /// Looks whether the process is still there, and starts another when it is time. `poll` does as much
    /// now and then; this is for who has no packets to poll for.
    pub fn look_after(&mut self) {
        self.check_end();
        self.revive();
    }

    /// Takes the verdicts that there are.
    pub(super) fn collect(&mut self) {
        let State::Running(peer) = &mut self.state else { return };
        let Some(new) = peer.rings.answered() else {
            return self.fail(Failure::Lied(Lie::Index));
        };
        for _ in 0..new {
            let State::Running(peer) = &mut self.state else { return };
            let reply = peer.rings.take();
            if let Err(lie) = self.judge(reply) {
                return self.fail(Failure::Lied(lie));
            }
        }
        if let Err(lie) = self.collect_digests() {
            return self.fail(Failure::Lied(lie));
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

    /// Another process takes the place of the one that there is, which ends.
    pub(super) fn take_over(&mut self, peer: Box<Peer>) {
        self.adopt(peer);
        self.digests.clear();
        self.version += 1;
        self.counters.swaps += 1;
    }

    /// From now on packets go to this process.
    fn adopt(&mut self, peer: Box<Peer>) {
        (self.engine, self.isolation) = (peer.engine, peer.isolation);
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

    /// Takes a verdict for the oldest packet, or says what is wrong with it.
    fn judge(&mut self, reply: Reply) -> Result<(), Lie> {
        let packet = *self.flights.front().ok_or(Lie::Index)?;
        if reply.slot != packet.slot {
            return Err(Lie::Slot);
        }
        if reply.generation != packet.generation {
            return Err(Lie::Generation);
        }
        let end = reply.start.checked_add(reply.length);
        if end.is_none_or(|end| end > self.arena.frame_size()) {
            return Err(Lie::Length);
        }
        if reply.has_clone > 1 {
            return Err(Lie::Verdict);
        }
        let said = verdicts::said(reply.verdict, reply.port).ok_or(Lie::Verdict)?;
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
