//! The switch's end of a sandbox process: its rings, requests and deadlines.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::eventfd::{EfdFlags, EventFd};
use p4_object::{Digest, Map};
use sandbox_queue::{Arena, Notices, Rings, SwitchEnd, sealed};

use super::channel::Channel;
use super::clock::since_start;
use super::deadlines::{Deadlines, Progress};
use super::error::StartError;
use super::group::{Group, Share};
use super::handle::Handle;
use super::isolation::Isolation;
use super::machine;
use super::message::{Answer, Hello, Request, VERSION};
use super::policy::Config;
use super::readings::Readings;
use super::shared::Shared;
use super::spawn::{Launcher, Started};
use super::vm_feed::{Follower, VmFeed};
use crate::control::ControlError;
use crate::program::Executor;

/// Memory beyond maps and packets: code, stack, and compilation.
const OWN_MEMORY: u64 = 1 << 30;
/// Number of packets that may exhaust the meter before the process loses its scheduling priority.
const MAX_EXHAUSTED: u64 = 4;

/// A process that has loaded a program.
#[derive(Debug)]
pub(super) struct Peer {
    process: Handle,
    channel: Channel,
    /// Memory of the rings.
    memory: Arc<OwnedFd>,
    rings: Arc<Rings>,
    pub(super) notices: Notices,
    /// Doorbell that the process rings when the switch has asked to be woken.
    bell: EventFd,
    pub(super) maps: Vec<Map>,
    /// Keys of VM values that the program reads.
    pub(super) keys: Vec<String>,
    /// Updates the readings while the process exists.
    _follower: Option<Arc<Follower>>,
    pub(super) digests: Vec<Digest>,
    pub(super) executor: Executor,
    pub(super) isolation: Isolation,
    /// Number of packets that exhausted the meter.
    endless: u64,
    /// True while the process has SCHED_IDLE by its configuration.
    is_background: bool,
    deadlines: Deadlines,
}

/// Program properties reported by the process.
struct Loaded {
    maps: Vec<Map>,
    keys: Vec<String>,
    digests: Vec<Digest>,
}

impl Peer {
    /// Starts a process and loads a program. Blocks until it is compiled.
    pub(super) fn start(
        launcher: &Launcher,
        config: &Config,
        arena: &Arc<Arena>,
        object: &[u8],
        vm: Option<&VmFeed>,
    ) -> Result<Self, StartError> {
        let mut launched = Launched::start(launcher, config, arena)?;
        let said = launched.isolated(config).and_then(|isolation| {
            let (loaded, executor) = launched.load(config, object)?;
            Ok((isolation, loaded, executor))
        });
        let (isolation, loaded, executor) = said.map_err(|why| launched.ending(why))?;
        let Launched { process, channel, memory, rings, bell, .. } = launched;
        process.limit_cpu(config.cpu);
        if config.is_background {
            process.schedule(libc::SCHED_IDLE);
        }
        let Loaded { maps, keys, digests } = loaded;
        // The process may be a client that is compromised: its maps would replace the journal's.
        let object = p4_object::read(object).map_err(|why| StartError::Refused(why.to_string()))?;
        if (&maps, &keys, &digests) != (&object.maps, &object.keys, &object.digests) {
            return Err(StartError::InvalidMessage);
        }
        let rings = Arc::new(rings);
        let follower = match vm.filter(|_| !keys.is_empty()) {
            Some(vm) => {
                let readings = Readings::new(&memory).map_err(StartError::Memory)?;
                Some(vm.follow(keys.clone(), readings))
            }
            None => None,
        };
        Ok(Self {
            process,
            channel,
            memory: Arc::new(memory),
            notices: Notices::new(Arc::clone(&rings)),
            rings,
            bell,
            maps,
            keys,
            digests,
            _follower: follower,
            executor,
            isolation,
            endless: 0,
            is_background: config.is_background,
            deadlines: Deadlines::default(),
        })
    }

    /// Opens the sandbox's own queue, once.
    pub(super) fn packets(&mut self) -> SwitchEnd {
        SwitchEnd::new(Arc::clone(&self.rings), 0)
    }

    /// Memory for other queues.
    pub(super) fn shared(&self, arena: Arc<Arena>, config: &Config) -> Shared {
        Shared {
            rings: Arc::clone(&self.memory),
            arena,
            places: config.places,
            queues: config.queues + 1,
            policy: config.policy,
        }
    }

    /// Records that `new` packets exhausted the meter. A process that does so repeatedly runs with
    /// SCHED_IDLE from then on, so that it does not delay other processes.
    pub(super) fn were_endless(&mut self, new: u64) {
        let before = self.endless;
        self.endless = before.saturating_add(new);
        if before < MAX_EXHAUSTED && self.endless >= MAX_EXHAUSTED {
            self.process.schedule(libc::SCHED_IDLE);
        }
    }

    /// Takes SCHED_IDLE from a process that has missed a deadline, unless it has it as a punishment.
    /// Returns true if it had it by its configuration.
    pub(super) fn leave_background(&mut self) -> bool {
        let was_in = std::mem::take(&mut self.is_background);
        if was_in && self.endless < MAX_EXHAUSTED {
            self.process.schedule(libc::SCHED_OTHER);
        }
        was_in
    }

    /// Records a missed deadline of a queue, and returns true if the process is to blame. From the
    /// first missed one on, it has no SCHED_IDLE, unless as a punishment. `busy` is the time for which
    /// it has handled requests.
    pub(super) fn is_late(&mut self, queue: u32, deadline: Duration, busy: Duration) -> bool {
        // The threads that submit packets also judge them.
        if self.process.is_host() {
            return false;
        }
        self.leave_background();
        let now = Progress {
            time: Instant::now(),
            ran: self.process.ran(),
            busy,
            verdicts: self.rings.verdicts(queue),
            is_runnable: self.process.is_runnable(),
        };
        self.deadlines.is_late(queue, now, deadline)
    }

    /// Sends a request and waits for the answer. The request is announced in the rings before it is
    /// sent, because it may exceed the socket buffer.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        until: Instant,
    ) -> Result<Answer, ControlError> {
        let message = request.encode();
        if message.len() > super::channel::MAX_MESSAGE {
            return Err(ControlError::TooLarge(message.len()));
        }
        self.notices.announce();
        self.channel.until(until);
        let gone = |_: io::Error| ControlError::Gone;
        let is_idle = self.is_background && self.endless < MAX_EXHAUSTED;
        // With SCHED_IDLE, it may have to wait for busy processes of other tenants.
        if is_idle {
            self.process.schedule(libc::SCHED_OTHER);
        }
        self.channel.send(&message).map_err(gone)?;
        let answer = self.channel.receive().map_err(gone)?;
        if is_idle {
            self.process.schedule(libc::SCHED_IDLE);
        }
        // A malformed answer: the caller rejects it as invalid.
        let none = || Answer::Failed("an answer that there is not".to_owned());
        match Answer::decode(&answer).unwrap_or_else(none) {
            Answer::Refused { at, why } => match request {
                Request::Apply(_) | Request::Test { .. } => {
                    Err(ControlError::Operation { at: at as usize, why })
                }
                _ => Err(ControlError::Map(why)),
            },
            answer => Ok(answer),
        }
    }

    /// Waits briefly for the exit status.
    pub(super) fn ending(&mut self) -> Option<ExitStatus> {
        self.process.ending()
    }

    /// Exit status, if the process has exited.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.ended()
    }

    /// Returns true if a host has closed the control socket.
    pub(super) fn has_left(&self) -> bool {
        self.process.is_host() && self.channel.is_readable().is_err()
    }

    /// Returns true if the program runs in a process that hosts it.
    pub(super) fn is_hosted(&self) -> bool {
        self.process.is_host()
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Clears the doorbell.
    pub(super) fn quiet(&self) {
        clear(&self.bell);
    }
}

/// Clears a doorbell, which may not have been rung. A host has the same file, and can clear the flag
/// O_NONBLOCK.
fn clear(bell: &EventFd) {
    let mut count = [0_u8; 8];
    let buffer = libc::iovec { iov_base: count.as_mut_ptr().cast(), iov_len: count.len() };
    // SAFETY: the buffer is writable, of the length given with it, and outlives the call.
    unsafe { libc::preadv2(bell.as_raw_fd(), &raw const buffer, 1, -1, libc::RWF_NOWAIT) };
}

/// A spawned process that has not yet answered.
struct Launched {
    process: Handle,
    channel: Channel,
    /// Memory of the rings.
    memory: OwnedFd,
    rings: Rings,
    bell: EventFd,
    /// Presence of memory and CPU limits by a control group.
    in_group: (bool, bool),
}

impl Launched {
    fn start(launcher: &Launcher, config: &Config, arena: &Arena) -> Result<Self, StartError> {
        let (places, queues) = (config.places.next_power_of_two(), config.queues + 1);
        let memory =
            sealed("kaido-rings", Rings::bytes(places, queues)).map_err(StartError::Memory)?;
        let rings = Rings::new(&memory, places, queues).map_err(StartError::Memory)?;
        let (mine, its) = UnixStream::pair().map_err(StartError::Spawn)?;
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let bell = EventFd::from_flags(flags).map_err(StartError::Memory)?;
        let its_bell = bell.as_fd().try_clone_to_owned().map_err(StartError::Spawn)?;
        let started = launcher.start(OwnedFd::from(its), its_bell).map_err(StartError::Spawn)?;
        let room = memory_of(config, arena);
        let of_vm = if launcher.is_vm() { machine::MEMORY } else { 0 };
        let (mut group, mut in_group) = (None, (false, false));
        if let Started::Child(child) = &started {
            let new = Group::new(Share { memory: room + of_vm, cpu: config.cpu });
            // Resources without a group limit are bounded by rlimits.
            let is_in = new.take(child.id()).is_ok();
            in_group = (is_in && new.memory, is_in && new.cpu);
            group = Some(new);
        }
        let process = Handle::new(started, group);
        // Loading has a limit of time, and others wait for it.
        process.limit_cpu(None);
        let mut channel = Channel::to_tenant(mine);
        channel.until(Instant::now() + config.load_time);
        let hello = Hello {
            version: VERSION,
            places,
            queues,
            frames: arena.frames(),
            frame_size: arena.frame_size(),
            spin_us: u32::try_from(config.spin.as_micros()).unwrap_or(u32::MAX),
            memory: room,
        };
        let files = [memory.as_raw_fd(), arena.file().as_raw_fd()];
        let mut launched = Self { process, channel, memory, rings, bell, in_group };
        let greeted = launched.channel.send_with(&Request::Hello(hello).encode(), &files);
        greeted.map_err(|why| launched.ending(StartError::NotReady(why)))?;
        Ok(launched)
    }

    /// Receives the isolation of the process. It comes from trusted code, before the program is
    /// loaded.
    fn isolated(&mut self, config: &Config) -> Result<Isolation, StartError> {
        let Answer::Isolated(isolation) = answer(&mut self.channel)? else {
            return Err(StartError::InvalidMessage);
        };
        let isolation = isolation.in_group(self.in_group.0, self.in_group.1);
        if self.process.is_host() {
            return Ok(isolation);
        }
        let missing = isolation.lacks(config.requires);
        if missing.is_empty() { Ok(isolation) } else { Err(StartError::Isolation { missing }) }
    }

    fn load(&mut self, config: &Config, object: &[u8]) -> Result<(Loaded, Executor), StartError> {
        let now_ns = u64::try_from(since_start().as_nanos()).unwrap_or(u64::MAX);
        let load = Request::Load { limits: config.limits, now_ns, object: object.to_vec() };
        self.channel.send(&load.encode()).map_err(StartError::NotReady)?;
        match answer(&mut self.channel)? {
            Answer::Ready { maps, keys, digests, executor } => {
                Ok((Loaded { maps, keys, digests }, executor))
            }
            _ => Err(StartError::InvalidMessage),
        }
    }

    /// Replaces a socket error by the exit status, which is more precise.
    fn ending(&mut self, why: StartError) -> StartError {
        match why {
            StartError::NotReady(why) => {
                self.process.ending().map_or(StartError::NotReady(why), StartError::Ended)
            }
            other => other,
        }
    }
}

/// Starts a process to determine the isolation that this host can provide.
///
/// # Errors
///
/// Fails if the process does not start.
pub fn probe(launcher: &Launcher) -> Result<Isolation, StartError> {
    let arena = Arena::new(1, 4096).map_err(StartError::Memory)?;
    let config = Config { requires: Isolation::LEAST, ..Config::default() };
    let mut launched = Launched::start(launcher, &config, &arena)?;
    launched.isolated(&config).map_err(|why| launched.ending(why))
}

/// Memory limit of a process in bytes: maps, packets, and an allowance.
fn memory_of(config: &Config, arena: &Arena) -> u64 {
    let packets = u64::from(arena.frames()) * u64::from(arena.frame_size());
    config.limits.memory.saturating_add(packets).saturating_add(OWN_MEMORY)
}

fn answer(channel: &mut Channel) -> Result<Answer, StartError> {
    let message = channel.receive_first().map_err(StartError::NotReady)?;
    match Answer::decode(&message).ok_or(StartError::InvalidMessage)? {
        Answer::Failed(why) => Err(StartError::Refused(why)),
        answer => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without O_NONBLOCK, read(2) would wait for the next ring.
    #[test]
    fn a_host_cannot_make_the_doorbell_block() {
        let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC).unwrap();
        clear(&bell);
        bell.write(3).unwrap();
        clear(&bell);
        let mut polled = [nix::poll::PollFd::new(bell.as_fd(), nix::poll::PollFlags::POLLIN)];
        assert_eq!(nix::poll::poll(&mut polled, 0_u8).unwrap(), 0);
    }
}
