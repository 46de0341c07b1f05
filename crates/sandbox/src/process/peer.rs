//! A tenant's process, as the switch sees it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};
use p4::object::{Digest, Map};

use super::arena::Arena;
use super::channel::Channel;
use super::error::StartError;
use super::group::{Group, Share};
use super::isolation::Isolation;
use super::memory::sealed;
use super::message::{Answer, Hello, Request, VERSION};
use super::policy::Config;
use super::readings::Readings;
use super::rings::{Rings, SwitchEnd};
use super::spawn::Launcher;
use super::vm_feed::{Follower, VmFeed};
use crate::control::ControlError;
use crate::program::Engine;

/// How long a process takes to end, at most, once its sockets are closed.
const ENDING: Duration = Duration::from_millis(100);

/// Memory beside a program's: code, stack, what compiling takes.
const OWN_MEMORY: u64 = 1 << 30;
/// Packets for which a program may not come to an end before others go first.
const PATIENCE: u32 = 4;

/// A process that has loaded a program.
#[derive(Debug)]
pub(super) struct Peer {
    process: Process,
    channel: Channel,
    pub(super) rings: SwitchEnd,
    /// Rung by the process when the switch asked to be woken.
    bell: EventFd,
    pub(super) maps: Vec<Map>,
    /// What the program reads of its tenant's VM.
    pub(super) keys: Vec<String>,
    /// Keeps that up to date.
    _follower: Option<Arc<Follower>>,
    pub(super) digests: Vec<Digest>,
    pub(super) engine: Engine,
    pub(super) isolation: Isolation,
    /// Packets for which the program did not come to an end.
    endless: u32,
}

/// What a process says of the program that it has loaded.
struct Loaded {
    maps: Vec<Map>,
    keys: Vec<String>,
    digests: Vec<Digest>,
}

/// A process that is killed and waited for when it is dropped.
#[derive(Debug)]
struct Process {
    child: Child,
    /// Removed behind it.
    _group: Group,
}

impl Process {
    /// How it ended: its sockets are closed a moment before that can be known.
    fn ending(&mut self) -> Option<ExitStatus> {
        let begin = Instant::now();
        loop {
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || begin.elapsed() > ENDING {
                return ended;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended; a process that is killed ends, stopped or not.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Peer {
    /// Starts a process and has it load a program. Takes as long as compiling does.
    pub(super) fn start(
        launcher: &Launcher,
        config: &Config,
        arena: &Arc<Arena>,
        object: &[u8],
        vm: Option<&VmFeed>,
    ) -> Result<Self, StartError> {
        let mut launched = Launched::start(launcher, config, arena)?;
        let said = launched.isolated(config).and_then(|isolation| {
            let (loaded, engine) = launched.load(config, object)?;
            Ok((isolation, loaded, engine))
        });
        let (isolation, loaded, engine) = said.map_err(|why| launched.ending(why))?;
        let Launched { process, channel, memory, rings, bell, .. } = launched;
        let Loaded { maps, keys, digests } = loaded;
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
            rings: SwitchEnd::new(rings),
            bell,
            maps,
            keys,
            digests,
            _follower: follower,
            engine,
            isolation,
            endless: 0,
        })
    }

    /// The program did not come to an end for a packet. One that does so again and again has its
    /// processor when nobody else wants it: others are not to wait for it.
    pub(super) fn was_endless(&mut self) {
        self.endless = self.endless.saturating_add(1);
        if self.endless == PATIENCE {
            let process = self.process.child.id().cast_signed();
            let none = libc::sched_param { sched_priority: 0 };
            // SAFETY: it reads a number, which is there. If it fails, the process stays as it was.
            unsafe { libc::sched_setscheduler(process, libc::SCHED_IDLE, &raw const none) };
        }
    }

    /// Asks, and waits for the answer. The process is told that there is something to read first: it may
    /// be more than a socket holds.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        until: Instant,
    ) -> Result<Answer, ControlError> {
        let message = request.encode();
        if message.len() > super::channel::MOST {
            return Err(ControlError::TooLarge(message.len()));
        }
        self.rings.announce();
        self.channel.until(until);
        let gone = |_: io::Error| ControlError::Gone;
        self.channel.send(&message).map_err(gone)?;
        let answer = self.channel.receive().map_err(gone)?;
        // No request is answered by this one: who asked takes it for nonsense.
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

    /// How it ended, if it is just about to.
    pub(super) fn ending(&mut self) -> Option<ExitStatus> {
        self.process.ending()
    }

    /// How it ended, if it did.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.child.try_wait().ok().flatten()
    }

    pub(super) fn id(&self) -> u32 {
        self.process.child.id()
    }

    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Takes what has been rung.
    pub(super) fn quiet(&self) {
        // Nothing rung is an error here.
        let _ = self.bell.read();
    }
}

/// A process that has been started, and has said nothing yet.
struct Launched {
    process: Process,
    channel: Channel,
    /// Of the rings.
    memory: OwnedFd,
    rings: Rings,
    bell: EventFd,
    /// Whether a group limits its memory, and its processors.
    in_group: (bool, bool),
}

impl Launched {
    fn start(launcher: &Launcher, config: &Config, arena: &Arena) -> Result<Self, StartError> {
        let places = config.places.next_power_of_two();
        let memory = sealed("kaido-rings", Rings::bytes(places)).map_err(StartError::Memory)?;
        let rings = Rings::new(&memory, places).map_err(StartError::Memory)?;
        let (mine, its) = UnixStream::pair().map_err(StartError::Spawn)?;
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let bell = EventFd::from_flags(flags).map_err(StartError::Memory)?;
        let its_bell = bell.as_fd().try_clone_to_owned().map_err(StartError::Spawn)?;
        let child = launcher.start(OwnedFd::from(its), its_bell).map_err(StartError::Spawn)?;
        let room = memory_of(config, arena);
        let group = Group::new(Share { memory: room, cpu: config.cpu });
        // What cannot be limited by a group has its own limits.
        let is_in = group.take(child.id()).is_ok();
        let in_group = (is_in && group.memory, is_in && group.cpu);
        let process = Process { child, _group: group };
        let mut channel = Channel::new(mine);
        channel.until(Instant::now() + config.load_time);
        let hello = Hello {
            version: VERSION,
            places,
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

    /// How the process is isolated: before it has seen the program, by our own code's word.
    fn isolated(&mut self, config: &Config) -> Result<Isolation, StartError> {
        let Answer::Isolated(isolation) = answer(&mut self.channel)? else {
            return Err(StartError::Nonsense);
        };
        let isolation = isolation.in_group(self.in_group.0, self.in_group.1);
        let missing = isolation.lacks(config.requires);
        if missing.is_empty() { Ok(isolation) } else { Err(StartError::Isolation { missing }) }
    }

    fn load(&mut self, config: &Config, object: &[u8]) -> Result<(Loaded, Engine), StartError> {
        let load = Request::Load(config.limits, object.to_vec()).encode();
        self.channel.send(&load).map_err(StartError::NotReady)?;
        match answer(&mut self.channel)? {
            Answer::Ready { maps, keys, digests, engine } => {
                Ok((Loaded { maps, keys, digests }, engine))
            }
            _ => Err(StartError::Nonsense),
        }
    }

    /// The same, or how it ended: then that says more.
    fn ending(&mut self, why: StartError) -> StartError {
        match why {
            StartError::NotReady(why) => {
                self.process.ending().map_or(StartError::NotReady(why), StartError::Ended)
            }
            other => other,
        }
    }
}

/// The isolation that this machine lets a process have: one is started, and ends.
///
/// # Errors
///
/// It does not start.
pub fn probe(launcher: &Launcher) -> Result<Isolation, StartError> {
    let arena = Arena::new(1, 4096).map_err(StartError::Memory)?;
    let config = Config { requires: Isolation::LEAST, ..Config::default() };
    let mut launched = Launched::start(launcher, &config, &arena)?;
    launched.isolated(&config).map_err(|why| launched.ending(why))
}

/// Bytes of memory that a process may have: maps, packets, and what it takes beside a program's.
fn memory_of(config: &Config, arena: &Arena) -> u64 {
    let packets = u64::from(arena.frames()) * u64::from(arena.frame_size());
    config.limits.memory.saturating_add(packets).saturating_add(OWN_MEMORY)
}

fn answer(channel: &mut Channel) -> Result<Answer, StartError> {
    let message = channel.receive().map_err(StartError::NotReady)?;
    match Answer::decode(&message).ok_or(StartError::Nonsense)? {
        Answer::Failed(why) => Err(StartError::Refused(why)),
        answer => Ok(answer),
    }
}
