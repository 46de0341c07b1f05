//! A program in a process that also has the packets: the process's threads run it without a wakeup.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sandbox_queue::Code;

use super::channel::Channel;
use super::isolation::Isolation;
use super::message::Answer;
use super::server::{BATCH, Greeted, Server};
use crate::packet::PacketBuffer;

/// Interval of the check for packets that another process has submitted.
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
    engine: OnceLock<Mutex<Engine>>,
    /// Another process may use the frames: no packet is judged.
    has_ended: AtomicBool,
    /// True while the engine is locked for the answer to a request.
    is_answering: AtomicBool,
}

/// Server and the doorbell of its switch.
struct Engine {
    server: Server,
    bell: OwnedFd,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Hosted {
    /// Serves a switch that has started this program with [`Launcher::hosted`](super::Launcher::hosted).
    /// Returns when it closes the control socket. Call this on a thread with all signals blocked: a
    /// write to a closed socket raises SIGPIPE, which would end the process.
    pub fn run(&self, control: OwnedFd, bell: OwnedFd) {
        let mut channel = Channel::new(UnixStream::from(control));
        let engine = match greet(&mut channel) {
            Ok(server) => Engine { server, bell },
            Err(why) => {
                // The switch may have exited.
                let _ = channel.send(&Answer::Failed(why.to_string()).encode());
                return;
            }
        };
        let engine = self.engine.get_or_init(|| Mutex::new(engine));
        while !self.has_ended() && self.step(&mut channel, engine).is_ok() {}
        self.end();
    }

    /// Ends the program: it judges no packet anymore. Waits for a batch of packets, and not for a request,
    /// which may change many maps.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        let Some(engine) = self.engine.get() else { return };
        while !self.is_answering.load(Ordering::SeqCst) {
            match engine.try_lock() {
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
                _ => return,
            }
        }
    }

    /// Returns true after [`Hosted::end`]: it judges no packets any more.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    /// Judges the packets that have been submitted, unless another thread does.
    pub fn serve(&self) {
        if let Some(mut engine) = self.try_lock() {
            engine.serve(&self.has_ended);
        }
    }

    /// Answers a request, or serves queues after [`LOOK`].
    fn step(&self, channel: &mut Channel, engine: &Mutex<Engine>) -> io::Result<()> {
        let time = PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::ZERO);
        // An interrupted wait is a short one.
        let _ = poll(&mut [PollFd::new(channel.as_fd(), PollFlags::POLLIN)], time);
        if channel.is_readable()? {
            // Packets are judged while a request arrives.
            let message = channel.receive()?;
            let mut engine = lock(engine);
            self.is_answering.store(true, Ordering::SeqCst);
            let answer = engine.server.answer(&message);
            self.is_answering.store(false, Ordering::SeqCst);
            drop(engine);
            channel.send(&answer.encode())?;
        }
        lock(engine).serve(&self.has_ended);
        Ok(())
    }

    /// Takes the program, for a batch of packets that are not submitted. Returns `None` if it has
    /// ended, or if another thread runs it.
    pub fn take(&self) -> Option<Turn<'_>> {
        let mut engine = self.try_lock().filter(|_| !self.has_ended())?;
        engine.server.begin();
        Some(Turn { engine, judged: 0 })
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Engine>> {
        match self.engine.get()?.try_lock() {
            Ok(engine) => Some(engine),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A hosted program that belongs to this thread while this value exists.
#[derive(Debug)]
pub struct Turn<'h> {
    engine: MutexGuard<'h, Engine>,
    judged: u32,
}

impl Turn<'_> {
    /// Judges a packet, whose memory may be the caller's. Returns the verdict; the packet has its
    /// new start and length.
    pub fn judge(&mut self, packet: &mut PacketBuffer<'_>, port: u32) -> Code {
        if self.judged > 0 && self.judged.is_multiple_of(BATCH) {
            // Digests leave, and the program sees the time pass.
            self.engine.finish();
            self.engine.server.begin();
        }
        self.judged += 1;
        self.engine.server.judge(packet, port)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.engine.finish();
    }
}

impl Engine {
    /// Ends a batch of packets that are in no queue.
    fn finish(&mut self) {
        let Self { server, bell, .. } = self;
        server.finish(|| ring(bell));
    }

    fn serve(&mut self, has_ended: &AtomicBool) {
        let Self { server, bell } = self;
        for _ in 0..ROUNDS {
            if has_ended.load(Ordering::SeqCst) || !server.serve_queues(|| ring(bell)) {
                return;
            }
        }
    }
}

fn greet(channel: &mut Channel) -> io::Result<Server> {
    let greeted = Greeted::receive(channel)?;
    channel.send(&Answer::Isolated(Isolation::default()).encode())?;
    let (server, ready) = greeted.load(&channel.receive()?, None)?;
    channel.send(&ready.encode())?;
    Ok(server)
}

fn lock(engine: &Mutex<Engine>) -> MutexGuard<'_, Engine> {
    engine.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Ends the program ([`Hosted::end`]): another process will use the frames of its packets. The
    /// process may have ended.
    fn end(&self);

    /// Process id.
    fn process(&self) -> u32;
}
