//! AF_XDP sockets that the client has created, by descriptor.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xsk::{KernelRings, Kind, Offsets, RingMemory};
use xsk_client::Memory;

/// A socket, as the client has set it up.
#[derive(Default)]
pub(crate) struct Created {
    /// Sizes of its rings, by [`Kind`]; 0 if it does not have one.
    pub(crate) sizes: [u32; 4],
    /// Rings of the client, which it maps in place of the kernel's.
    rings: [Option<Arc<RingMemory>>; 4],
    /// Packet memory, the socket's own or that of another one.
    pub(crate) memory: Option<Memory>,
    /// Rings of the kernel, once the socket is bound.
    pub(crate) kernel: Option<KernelRings>,
}

impl Created {
    /// Returns a ring of the client. Creates it if the socket has one.
    ///
    /// # Errors
    ///
    /// Fails if there is too little memory, or if there are too many descriptors.
    pub(crate) fn ring(
        &mut self,
        socket: BorrowedFd<'_>,
        kind: Kind,
    ) -> io::Result<Option<Arc<RingMemory>>> {
        let at = kind as usize;
        if self.rings[at].is_none() && self.sizes[at] > 0 {
            let offsets = Offsets::of(socket)?[at];
            let ring = RingMemory::new(offsets, self.sizes[at], kind.words())?;
            self.rings[at] = Some(Arc::new(ring));
        }
        Ok(self.rings[at].clone())
    }
}

/// A socket, and the process that created it: a child inherits the descriptor, but only the creator
/// moves the rings.
struct Owned {
    process: u32,
    created: Arc<Mutex<Created>>,
}

static ALL: Mutex<BTreeMap<RawFd, Owned>> = Mutex::new(BTreeMap::new());
/// Number of sockets, read without the lock: most mmap(2) and close(2) calls are for other
/// descriptors.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn all() -> MutexGuard<'static, BTreeMap<RawFd, Owned>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a socket.
pub(crate) fn lock(created: &Mutex<Created>) -> MutexGuard<'_, Created> {
    created.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a new socket.
pub(crate) fn add(descriptor: RawFd) {
    let process = std::process::id();
    let mut all = all();
    all.insert(descriptor, Owned { process, created: Arc::default() });
    COUNT.store(all.len(), Relaxed);
}

/// Returns the socket of a descriptor, if this process has created it.
pub(crate) fn find(descriptor: RawFd) -> Option<Arc<Mutex<Created>>> {
    if COUNT.load(Relaxed) == 0 || xsk_client::is_child() {
        return None;
    }
    all().get(&descriptor).map(|owned| Arc::clone(&owned.created))
}

/// Removes the socket of a descriptor, unless another process has created it, such as the parent of
/// a child of vfork(2).
pub(crate) fn remove(descriptor: RawFd) -> Option<Arc<Mutex<Created>>> {
    if COUNT.load(Relaxed) == 0 || xsk_client::is_child() {
        return None;
    }
    let mut all = all();
    if all.get(&descriptor)?.process != std::process::id() {
        return None;
    }
    let removed = all.remove(&descriptor);
    COUNT.store(all.len(), Relaxed);
    Some(removed?.created)
}
