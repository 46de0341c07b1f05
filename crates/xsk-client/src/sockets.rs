//! Sockets of the client, by descriptor.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, RwLock};

use xsk::{Consumer, Frames, KernelRings, Kind, Producer, RingMemory, State};
use xsk_link::Direction;

use crate::area::Area;
use crate::judge::Judge;
use crate::kick;
use crate::longest::LongestFrame;
use crate::path::{Begun, Path};

/// An AF_XDP socket whose rings are moved by this crate.
pub struct Socket {
    /// Number on the link to the daemon.
    pub number: u32,
    /// The socket's descriptor, which its owner closes.
    pub descriptor: RawFd,
    /// Each path is moved by one thread at a time; others skip it. `None` if the socket does not
    /// have it, or is being deleted.
    pub receive: Mutex<Option<Path>>,
    /// The path of transmitted packets.
    pub transmit: Mutex<Option<Path>>,
    /// The packet memory.
    area: Option<Area>,
    /// Rings of the client, which the paths refer to.
    _client: ClientRings,
}

/// State of a socket for poll(2). False for a path that another thread is moving.
#[derive(Debug, Clone, Copy, Default)]
pub struct Polled {
    /// The client has packets to take.
    pub is_readable: bool,
    /// The client's TX ring has room.
    pub is_writable: bool,
    /// The kernel needs a system call to receive.
    pub needs_wakeup: bool,
    /// Packets have waited for their verdicts for longer than a process on another CPU takes.
    pub is_waiting: bool,
}

/// The interface and the queue of a socket.
pub struct QueueName {
    /// Name of the interface.
    pub interface: String,
    /// Number of the queue.
    pub queue: u32,
}

/// Rings that a client uses instead of the kernel's.
#[derive(Clone)]
pub struct ClientRings {
    /// Fill ring.
    pub fill: Arc<RingMemory>,
    /// Completion ring.
    pub completion: Arc<RingMemory>,
    /// RX ring.
    pub rx: Arc<RingMemory>,
    /// TX ring.
    pub tx: Arc<RingMemory>,
}

/// The packet memory of a socket.
#[derive(Clone)]
pub struct Memory {
    /// Owners of the chunks.
    pub frames: Arc<Frames>,
    /// The memory; packets are not judged without it, but dropped.
    pub area: Option<Area>,
    /// Longest frames that a program makes, received and transmitted.
    pub longest: [LongestFrame; 2],
}

/// Returns the number of a new socket.
fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

// SAFETY: the rings' pointers are only used by the ends, each by one thread at a time.
unsafe impl Send for Socket {}
// SAFETY: as above.
unsafe impl Sync for Socket {}

impl Socket {
    /// Connects the client's rings with the kernel's. No packet passes before the socket is
    /// [open](crate::open).
    ///
    /// # Safety
    ///
    /// The kernel's rings are mapped until the socket is [closed](Socket::close), and no other ends
    /// of them are used. The client uses the other end of its own rings, from one thread at a time.
    pub unsafe fn new(
        descriptor: RawFd,
        kernel: &KernelRings,
        client: ClientRings,
        memory: &Memory,
    ) -> Self {
        let [fill, completion, rx, tx] = Kind::ALL.map(|kind| kernel.ring(kind));
        let judges = memory.longest.clone().map(|longest| Judge::new(memory.area, longest));
        let [receiving, transmitting] = judges;
        // SAFETY: required by this function as well; the client's rings are kept with the paths.
        let receive = (rx.size > 0).then(|| unsafe {
            Path {
                packets_in: Consumer::new(rx),
                packets_out: Producer::new(&client.rx.view()),
                chunks_in: Consumer::new(&client.fill.view()),
                chunks_out: Producer::new(fill),
                source: State::Receiving,
                sink: State::Client,
                frames: Arc::clone(&memory.frames),
                judge: receiving,
                dropped: Vec::new(),
                begun: Begun::default(),
            }
        });
        // SAFETY: as above.
        let transmit = (tx.size > 0).then(|| unsafe {
            Path {
                packets_in: Consumer::new(&client.tx.view()),
                packets_out: Producer::new(tx),
                chunks_in: Consumer::new(completion),
                chunks_out: Producer::new(&client.completion.view()),
                source: State::Client,
                sink: State::Transmitting,
                frames: Arc::clone(&memory.frames),
                judge: transmitting,
                dropped: Vec::new(),
                begun: Begun::default(),
            }
        });
        Self {
            number: number(),
            descriptor,
            receive: Mutex::new(receive),
            transmit: Mutex::new(transmit),
            area: memory.area,
            _client: client,
        }
    }

    /// Returns true for each of the directions that the socket has: receive, transmit.
    pub(crate) fn directions(&self) -> [bool; 2] {
        Direction::BOTH.map(|direction| locked(self.path(direction)).is_some())
    }

    fn path(&self, direction: Direction) -> &Mutex<Option<Path>> {
        match direction {
            Direction::Receive => &self.receive,
            Direction::Transmit => &self.transmit,
        }
    }

    /// Moves the entries of both paths. A path that another thread is moving is skipped. Returns the
    /// state of the socket afterwards.
    ///
    /// A polling switch calls this in a loop for each port, so that its cost delays every packet. It
    /// takes each lock once, and reads the clock only if a process has packets. Before, this took 80 %
    /// of such a switch's time, 35 % for the clock.
    pub fn advance(&self) -> Polled {
        let mut polled = Polled::default();
        self.with_receive(|receive| {
            receive.advance();
            polled.is_readable = receive.has_output();
            polled.needs_wakeup = receive.needs_wakeup();
            polled.is_waiting = receive.judge.is_waiting();
        });
        if let Ok(mut locked) = self.transmit.try_lock()
            && let Some(transmit) = locked.as_mut()
        {
            transmit.advance();
            if transmit.has_output() && transmit.needs_wakeup() {
                // The client has made its system call for these packets before their verdicts.
                kick::kick(self.descriptor);
                transmit.return_chunks();
            }
            polled.is_writable = transmit.is_writable();
            polled.is_waiting |= transmit.judge.is_waiting();
        }
        polled
    }

    /// Returns true if the client has packets to take.
    pub fn is_readable(&self) -> bool {
        self.with_receive(|receive| receive.has_output()) == Some(true)
    }

    /// Number of packets that the kernel has to transmit. Zero while another thread moves them.
    pub fn sending(&self) -> u32 {
        self.transmit.try_lock().ok().and_then(|path| Some(path.as_ref()?.pending())).unwrap_or(0)
    }

    /// Calls a function on the receive path, if there is one that no other thread is moving.
    fn with_receive<R>(&self, function: impl FnOnce(&mut Path) -> R) -> Option<R> {
        self.receive.try_lock().ok()?.as_mut().map(function)
    }

    /// Returns true if packets wait for verdicts.
    pub fn is_judging(&self) -> bool {
        self.any_judge(|judge| judge.flying() > 0)
    }

    fn any_judge(&self, function: impl Fn(&mut Judge) -> bool) -> bool {
        let is_so = |direction| self.with_judge(direction, &function);
        Direction::BOTH.into_iter().any(|direction| is_so(direction) == Some(true))
    }

    /// Ends both paths, and waits for the threads that move them.
    pub fn close(&self) {
        Direction::BOTH.into_iter().for_each(|direction| *locked(self.path(direction)) = None);
    }

    /// Calls a function on the programs of a direction, if the socket has it.
    pub(crate) fn with_judge<R>(
        &self,
        direction: Direction,
        function: impl FnOnce(&mut Judge) -> R,
    ) -> Option<R> {
        locked(self.path(direction)).as_mut().map(|path| function(&mut path.judge))
    }
}

/// Locks a path. The library does not panic, so that its state is valid even if the lock is poisoned.
fn locked<T>(path: &Mutex<T>) -> MutexGuard<'_, T> {
    path.lock().unwrap_or_else(PoisonError::into_inner)
}

static SOCKETS: RwLock<Vec<Option<Arc<Socket>>>> = RwLock::new(Vec::new());

/// True in a child of fork(2). It shares the rings with its parent, and only the parent moves their
/// entries.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Registers a handler that sets [`is_child`] in forked children.
pub fn detect_forks() {
    static ONCE: Once = Once::new();
    extern "C" fn in_child() {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
    // Without memory for the handler, a child moves its parent's rings as well.
    ONCE.call_once(|| {
        // SAFETY: the handler stores one word.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Returns true in a child that was forked after [`detect_forks`].
pub fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// The socket of a descriptor, if it is one.
pub fn find(descriptor: RawFd) -> Option<Arc<Socket>> {
    if is_child() {
        return None;
    }
    let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    sockets.get(usize::try_from(descriptor).ok()?)?.clone()
}

/// Descriptors of all sockets; none in a child.
pub fn descriptors() -> Vec<RawFd> {
    match is_child() {
        true => Vec::new(),
        false => all().iter().map(|socket| socket.descriptor).collect(),
    }
}

/// All sockets.
pub(crate) fn all() -> Vec<Arc<Socket>> {
    let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    sockets.iter().flatten().cloned().collect()
}

/// Ends the sockets whose packet memory is in a range of addresses that the client is about to unmap.
/// The kernel keeps such memory, so that clients may do so before they close their sockets. Allocates
/// no memory: an allocator may be the caller.
pub fn unmap(start: usize, length: usize) {
    if is_child() || length == 0 {
        return;
    }
    let is_in = |socket: &Arc<Socket>| socket.area.is_some_and(|area| area.overlaps(start, length));
    let mut next = 0;
    loop {
        let found = {
            let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
            let mut rest = sockets.iter().enumerate().skip(next);
            rest.find_map(|(at, socket)| Some((at, socket.clone().filter(is_in)?)))
        };
        // Not under the lock: closing a socket unmaps memory too.
        let Some((at, socket)) = found else { return };
        socket.close();
        next = at + 1;
    }
}

/// Registers a socket.
pub(crate) fn add(socket: Socket) -> Arc<Socket> {
    let socket = Arc::new(socket);
    let Ok(at) = usize::try_from(socket.descriptor) else { return socket };
    let mut sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    if sockets.len() <= at {
        sockets.resize(at + 1, None);
    }
    // A socket that the client has closed by other means. Dropping it unmaps memory, which takes the
    // lock.
    let old = sockets[at].replace(Arc::clone(&socket));
    drop(sockets);
    drop(old);
    socket
}

/// Removes the socket of a descriptor from those that [`find`] returns.
pub fn remove(descriptor: RawFd) -> Option<Arc<Socket>> {
    let mut sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    sockets.get_mut(usize::try_from(descriptor).ok()?)?.take()
}
