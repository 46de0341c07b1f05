//! Process failures: deadline exceeded, exit, protocol violation.

use std::borrow::Cow;
use std::fmt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::{TryRecvError, channel};
use std::time::Instant;

use sandbox_queue::{ProtocolViolation, Reason};

use super::{Sandbox, State};
use crate::control::{ControlError, Operation};
use crate::maps::MapError;
use crate::process::error::StartError;
use crate::process::message::{Answer as Said, Request};
use crate::process::peer::Peer;
use crate::process::policy::Config;

/// Reason to kill a process.
#[derive(Debug)]
pub(in crate::process) enum Failure {
    Slow,
    Ended(ExitStatus),
    ProtocolViolation(ProtocolViolation),
    Start(StartError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slow => f.write_str("no answer within the deadline"),
            Self::Ended(status) => write!(f, "the process ended: {status}"),
            Self::ProtocolViolation(of) => write!(f, "the process violated the protocol: {of}"),
            Self::Start(why) => write!(f, "not started again: {why}"),
        }
    }
}

/// Number of operations replayed per batch.
const REPLAY_BATCH: usize = 1024;
/// Size of the keys and values of a batch, in bytes, after which the next batch begins.
const REPLAY_SIZE: usize = 1 << 20;

impl Sandbox {
    /// Kills the process. Packets in flight are answered after that, when it can no longer write to
    /// them.
    pub(in crate::process) fn fail(&mut self, failure: Failure) {
        self.last_failure = Some(failure.to_string());
        let counters = &mut self.counters;
        let reason = match failure {
            Failure::Slow => {
                counters.slow_processes += 1;
                Reason::Deadline
            }
            Failure::Ended(_) => {
                counters.crashed_processes += 1;
                Reason::Crashed
            }
            Failure::ProtocolViolation(_) => {
                counters.violating_processes += 1;
                Reason::ProtocolViolation
            }
            Failure::Start(_) => Reason::Restarting,
        };
        if !matches!(failure, Failure::Start(_)) {
            self.last_end = reason;
        }
        let now = Instant::now();
        let back_off = self.config.back_off;
        self.failures.push_back(now);
        while self.failures.front().is_some_and(|then| now - *then > back_off.window) {
            self.failures.pop_front();
        }
        let is_over = self.failures.len() >= back_off.failures;
        // The assignment drops the old process, which kills and reaps it.
        self.epoch += 1;
        self.state = if is_over || matches!(failure, Failure::ProtocolViolation(_)) {
            State::Evicted
        } else {
            State::Waiting(now + back_off.wait(self.failures.len()))
        };
        self.queue.disconnect(reason, self.without_process());
    }

    /// Gives up a host that has ended. The program has not failed: a process of its own
    /// starts immediately, and judges the packets in flight.
    pub(super) fn leave(&mut self) {
        self.epoch += 1;
        self.last_end = Reason::Crashed;
        self.state = State::Waiting(Instant::now());
        self.queue.disconnect(Reason::Crashed, self.without_process());
    }

    /// Reason that packets get no verdict while no process is running.
    pub fn without_process(&self) -> Reason {
        match self.state {
            State::Evicted => Reason::Evicted,
            _ => Reason::Restarting,
        }
    }

    /// Starts a process when the back-off has elapsed, and adopts it when it is ready.
    pub(super) fn revive(&mut self) {
        match &self.state {
            State::Waiting(until) if Instant::now() >= *until => {
                let (done, result) = channel();
                let (launcher, config) = (self.launcher.clone(), self.config);
                let (arena, object) = (Arc::clone(&self.arena), self.object.clone());
                // The VM's keys were checked on the first start; a change does not prevent a
                // restart.
                let vm = self.vm.clone();
                let journal = Arc::clone(&self.journal);
                std::thread::spawn(move || {
                    let peer = Peer::start(&launcher, &config, &arena, &object, vm.as_ref());
                    // The receiver may be dropped; then the process is dropped, too.
                    let ready = peer.and_then(|mut peer| {
                        replay(&mut peer, journal.operations(), &config)?;
                        Ok(peer)
                    });
                    drop(journal);
                    let _ = done.send(ready);
                });
                self.state = State::Starting(result);
            }
            State::Starting(result) => match result.try_recv() {
                Ok(Ok(peer)) => {
                    self.counters.restarts += 1;
                    self.adopt(Box::new(peer));
                }
                Ok(Err(why)) => self.fail(Failure::Start(why)),
                Err(TryRecvError::Disconnected) => {
                    self.fail(Failure::Start(StartError::InvalidMessage))
                }
                Err(TryRecvError::Empty) => {}
            },
            _ => {}
        }
    }
}

/// Replays the journal to a new process.
pub(in crate::process) fn replay<'o>(
    peer: &mut Peer,
    mut operations: impl Iterator<Item = Cow<'o, Operation>>,
    config: &Config,
) -> Result<(), StartError> {
    loop {
        let (mut batch, mut size) = (Vec::new(), 0);
        for operation in operations.by_ref() {
            size += operation.size();
            batch.push(operation.into_owned());
            if batch.len() == REPLAY_BATCH || size >= REPLAY_SIZE {
                break;
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        while !batch.is_empty() {
            let until = Instant::now() + config.answer_time;
            let why = match peer.ask(&Request::Apply(batch.clone()), until) {
                Ok(Said::Done) => break,
                Ok(_) => return Err(StartError::InvalidMessage),
                Err(why) => why,
            };
            // An entry inserted and deleted before the restart does not exist in the new process.
            match why {
                ControlError::Operation { at, why: MapError::Absent }
                    if matches!(batch.get(at), Some(Operation::Write { .. })) =>
                {
                    batch.remove(at);
                }
                why => return Err(StartError::Carry(why)),
            }
        }
    }
}
