//! Sockets of the client, by descriptor.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use xsk::{Ring, RingMemory};

use xsk_link::Direction;

use crate::judge::Judge;
use crate::kick;
use crate::receive::Receive;
use crate::transmit::Transmit;

/// An AF_XDP socket whose rings are moved by this library.
pub(crate) struct Socket {
    /// Number on the link to `kaido xsk`.
    pub(crate) number: u32,
    pub(crate) descriptor: i32,
    /// Address of libxdp's `struct xsk_socket`.
    pub(crate) handle: usize,
    /// Each path is moved by one thread at a time; others skip it.
    pub(crate) receive: Option<Mutex<Receive>>,
    pub(crate) transmit: Option<Mutex<Transmit>>,
    pub(crate) rx_size: u32,
    /// Rings of the kernel and of the client, which the paths refer to.
    pub(crate) _rings: [Box<Ring>; 2],
    pub(crate) _memory: Vec<Arc<RingMemory>>,
}

// SAFETY: the rings' pointers are only used by the ends, each by one thread at a time.
unsafe impl Send for Socket {}
// SAFETY: as above.
unsafe impl Sync for Socket {}

impl Socket {
    /// Moves the entries of both paths. A path that another thread is moving is skipped.
    pub(crate) fn advance(&self) {
        if let Some(mut receive) = self.receive.as_ref().and_then(|one| one.try_lock().ok()) {
            receive.advance();
        }
        if let Some(mut transmit) = self.transmit.as_ref().and_then(|one| one.try_lock().ok())
            && transmit.advance()
            && transmit.needs_wakeup()
        {
            // The client has made its system call for these packets before their verdicts.
            kick::kick(self.descriptor);
            transmit.complete();
        }
    }

    /// Returns true if the client has packets to take.
    pub(crate) fn is_readable(&self) -> bool {
        let receive = self.receive.as_ref().and_then(|one| one.try_lock().ok());
        receive.is_some_and(|receive| receive.is_readable(self.rx_size))
    }

    /// Returns true if the kernel needs a system call to receive.
    pub(crate) fn needs_wakeup(&self) -> bool {
        let receive = self.receive.as_ref().and_then(|one| one.try_lock().ok());
        receive.is_some_and(|receive| receive.needs_wakeup())
    }

    /// Returns true if packets wait for verdicts.
    pub(crate) fn is_judging(&self) -> bool {
        let receives = self.receive.as_ref().is_some_and(|one| locked(one).judge.flying() > 0);
        receives || self.transmit.as_ref().is_some_and(|one| locked(one).judge.flying() > 0)
    }

    /// Returns true if a process is slower than one that polls on another processor.
    pub(crate) fn is_waiting(&self) -> bool {
        let receives = self.receive.as_ref().is_some_and(|one| locked(one).judge.is_waiting());
        receives || self.transmit.as_ref().is_some_and(|one| locked(one).judge.is_waiting())
    }

    /// Calls a function on the programs of a direction, if the socket has it.
    pub(crate) fn with_judge<R>(
        &self,
        direction: Direction,
        function: impl FnOnce(&mut Judge) -> R,
    ) -> Option<R> {
        match direction {
            Direction::Receive => self.receive.as_ref().map(|one| function(&mut locked(one).judge)),
            Direction::Transmit => {
                self.transmit.as_ref().map(|one| function(&mut locked(one).judge))
            }
        }
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
pub(crate) fn add(socket: Socket) {
    let Ok(at) = usize::try_from(socket.descriptor) else { return };
    let mut sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    if sockets.len() <= at {
        sockets.resize(at + 1, None);
    }
    sockets[at] = Some(Arc::new(socket));
}

/// Removes the socket of libxdp's `struct xsk_socket`, and returns it.
pub(crate) fn remove(handle: usize) -> Option<Arc<Socket>> {
    let mut sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    let is_it = |socket: &&mut Option<Arc<Socket>>| {
        socket.as_ref().is_some_and(|socket| socket.handle == handle)
    };
    sockets.iter_mut().find(is_it)?.take()
}
