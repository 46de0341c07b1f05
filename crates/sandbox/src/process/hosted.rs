//! A program in a process that also has the packets: the process's threads run it without a wakeup.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::channel::Channel;
use super::isolation::Isolation;
use super::message::Answer;
use super::server::{Greeted, Server};

/// Interval at which packets are looked for that no thread of the process has submitted.
const LOOK: Duration = Duration::from_millis(5);

/// Maximum number of batches of each queue that a thread judges before it returns: other threads
/// may submit packets without end.
const ROUNDS: u32 = 16;

/// A hosted program. It answers requests of the switch on a thread of its own; packets are judged by
/// the threads that call [`Hosted::serve`].
///
/// The program has the bounds and the meter of every program, and no further isolation.
#[derive(Debug, Default)]
pub struct Hosted {
    server: OnceLock<Mutex<Judge>>,
}

/// Server and the doorbell of its switch.
struct Judge {
    server: Server,
    bell: OwnedFd,
    /// The switch has closed the control socket.
    has_ended: bool,
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judge").finish_non_exhaustive()
    }
}

impl Hosted {
    /// Serves a switch that has started this program with [`Launcher::hosted`](super::Launcher::hosted).
    /// Returns when it closes the control socket. Call this on a thread that receives no signals.
    pub fn run(&self, control: OwnedFd, bell: OwnedFd) {
        let mut channel = Channel::new(UnixStream::from(control));
        let judge = match greet(&mut channel) {
            Ok(server) => Judge { server, bell, has_ended: false },
            Err(why) => {
                // The switch may have exited.
                let _ = channel.send(&Answer::Failed(why.to_string()).encode());
                return;
            }
        };
        let judge = self.server.get_or_init(|| Mutex::new(judge));
        while let Ok(()) = step(&mut channel, judge) {}
        lock(judge).has_ended = true;
    }

    /// Judges the packets that have been submitted, unless another thread does.
    pub fn serve(&self) {
        let Some(judge) = self.server.get() else { return };
        let mut judge = match judge.try_lock() {
            Ok(judge) => judge,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        judge.serve();
    }
}

impl Judge {
    fn serve(&mut self) {
        let Self { server, bell, has_ended } = self;
        // A later process may use the frames of packets that this one has not answered.
        for _ in 0..ROUNDS {
            if *has_ended || !server.serve_queues(|| ring(bell)) {
                return;
            }
        }
    }
}

fn greet(channel: &mut Channel) -> io::Result<Server> {
    let greeted = Greeted::receive(channel)?;
    channel.send(&Answer::Isolated(Isolation::default()).encode())?;
    let (server, ready) = greeted.load(channel)?;
    channel.send(&ready.encode())?;
    Ok(server)
}

/// Answers a request, or serves queues after [`LOOK`].
fn step(channel: &mut Channel, judge: &Mutex<Judge>) -> io::Result<()> {
    let time = PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::ZERO);
    // An interrupted wait is a short one.
    let _ = poll(&mut [PollFd::new(channel.as_fd(), PollFlags::POLLIN)], time);
    if channel.is_readable()? {
        // Packets are judged while a request arrives.
        let message = channel.receive()?;
        let answer = lock(judge).server.answer(&message);
        channel.send(&answer.encode())?;
    }
    lock(judge).serve();
    Ok(())
}

fn lock(judge: &Mutex<Judge>) -> std::sync::MutexGuard<'_, Judge> {
    judge.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn ring(bell: &OwnedFd) {
    // The counter overflows only if the switch does not read it; the doorbell is pending then.
    let _ = nix::unistd::write(bell.as_fd(), &1_u64.to_ne_bytes());
}

/// A process that hosts programs.
pub trait Host: std::fmt::Debug + Send + Sync {
    /// Passes the ends of a program's control socket and doorbell to the process, for
    /// [`Hosted::run`].
    ///
    /// # Errors
    ///
    /// Fails if the process has ended.
    fn start(&self, control: OwnedFd, bell: OwnedFd) -> io::Result<()>;

    /// Process id.
    fn process(&self) -> u32;
}

/// A host that is shared by the programs of one process.
pub(super) type SharedHost = Arc<dyn Host>;
