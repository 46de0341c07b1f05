//! Sockets of the client, by descriptor.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use xsk::{Ring, RingMemory};
use xsk_link::Direction;

use crate::judge::Judge;
use crate::kick;
use crate::path::Path;

/// An AF_XDP socket whose rings are moved by this library.
pub(crate) struct Socket {
    /// Number on the link to `kaido xsk`.
    pub(crate) number: u32,
    pub(crate) descriptor: i32,
    /// Address of libxdp's `struct xsk_socket`.
    pub(crate) handle: usize,
    /// Address of libxdp's `struct xsk_umem`.
    pub(crate) umem: usize,
    /// Each path is moved by one thread at a time; others skip it. `None` if the socket does not
    /// have it, or is being deleted.
    pub(crate) receive: Mutex<Option<Path>>,
    pub(crate) transmit: Mutex<Option<Path>>,
    /// Rings of the kernel and of the client, which the paths refer to.
    pub(crate) _rings: [Box<Ring>; 2],
    pub(crate) _memory: Vec<Arc<RingMemory>>,
}

// SAFETY: the rings' pointers are only used by the ends, each by one thread at a time.
unsafe impl Send for Socket {}
// SAFETY: as above.
unsafe impl Sync for Socket {}

impl Socket {
    fn path(&self, direction: Direction) -> &Mutex<Option<Path>> {
        match direction {
            Direction::Receive => &self.receive,
            Direction::Transmit => &self.transmit,
        }
    }

    /// Moves the entries of both paths. A path that another thread is moving is skipped.
    pub(crate) fn advance(&self) {
        self.with_receive(Path::advance);
        if let Ok(mut locked) = self.transmit.try_lock()
            && let Some(transmit) = locked.as_mut()
        {
            transmit.advance();
            if transmit.has_output() && transmit.needs_wakeup() {
                // The client has made its system call for these packets before their verdicts.
                kick::kick(self.descriptor);
                transmit.return_chunks();
            }
        }
    }

    /// Returns true if the client has packets to take.
    pub(crate) fn is_readable(&self) -> bool {
        self.with_receive(|receive| receive.has_output()) == Some(true)
    }

    /// Returns true if the kernel needs a system call to receive.
    pub(crate) fn needs_wakeup(&self) -> bool {
        self.with_receive(|receive| receive.needs_wakeup()) == Some(true)
    }

    /// Calls a function on the receive path, if there is one that no other thread is moving.
    fn with_receive<R>(&self, function: impl FnOnce(&mut Path) -> R) -> Option<R> {
        self.receive.try_lock().ok()?.as_mut().map(function)
    }

    /// Returns true if packets wait for verdicts.
    pub(crate) fn is_judging(&self) -> bool {
        self.any_judge(|judge| judge.flying() > 0)
    }

    /// Returns true if a process is slower than one that polls on another CPU.
    pub(crate) fn is_waiting(&self) -> bool {
        self.any_judge(|judge| judge.is_waiting())
    }

    fn any_judge(&self, function: impl Fn(&mut Judge) -> bool) -> bool {
        let is_so = |direction| self.with_judge(direction, &function);
        Direction::BOTH.into_iter().any(|direction| is_so(direction) == Some(true))
    }

    /// Ends both paths, and waits for the threads that move them.
    pub(crate) fn close(&self) {
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

/// The socket of a descriptor, if it is one.
pub(crate) fn find(descriptor: i32) -> Option<Arc<Socket>> {
    let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    sockets.get(usize::try_from(descriptor).ok()?)?.clone()
}

/// All sockets.
pub(crate) fn all() -> Vec<Arc<Socket>> {
    let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    sockets.iter().flatten().cloned().collect()
}

/// Registers a socket.
pub(crate) fn add(socket: Socket) -> Arc<Socket> {
    let socket = Arc::new(socket);
    let Ok(at) = usize::try_from(socket.descriptor) else { return socket };
    let mut sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    if sockets.len() <= at {
        sockets.resize(at + 1, None);
    }
    sockets[at] = Some(Arc::clone(&socket));
    socket
}

/// Removes the socket of libxdp's `struct xsk_socket`, and returns it.
pub(crate) fn remove(handle: usize) -> Option<Arc<Socket>> {
    let mut sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    let is_it = |socket: &&mut Option<Arc<Socket>>| {
        socket.as_ref().is_some_and(|socket| socket.handle == handle)
    };
    sockets.iter_mut().find(is_it)?.take()
}
