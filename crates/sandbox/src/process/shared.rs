//! Memory that a sandbox process shares with other threads and processes than its owner.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use nix::errno::Errno;
use sandbox_queue::{Arena, PacketQueue, Policy, Rings, SwitchEnd};

/// An arena owned by a sandbox.
#[derive(Debug)]
pub(super) struct Owned(Arc<Arena>);

impl Owned {
    /// Takes ownership; `None` if another sandbox owns the arena.
    pub(super) fn take(arena: Arc<Arena>) -> Option<Self> {
        arena.claim().then(|| Self(arena))
    }
}

impl std::ops::Deref for Owned {
    type Target = Arc<Arena>;

    fn deref(&self) -> &Arc<Arena> {
        &self.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Memory of a running process: rings and frames for queues of other threads or processes. It may
/// be passed on by its descriptors.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Memfd of the rings.
    pub rings: Arc<OwnedFd>,
    /// Frames of all queues.
    pub arena: Arc<Arena>,
    /// Capacity of each ring.
    pub places: u32,
    /// Number of queues. Number 0 is the sandbox's own.
    pub queues: u32,
    /// Policy for packets without a verdict.
    pub policy: Policy,
}

impl Shared {
    /// Opens the queue `number`, which no one else uses. Number 0 is the sandbox's own.
    ///
    /// # Errors
    ///
    /// Fails if the memory cannot be mapped, or if there is no such queue. Returns `EBUSY` if it has
    /// packets in flight of an earlier user.
    pub fn open(&self, number: u32) -> Result<PacketQueue, Errno> {
        if number == 0 || number >= self.queues {
            return Err(Errno::EINVAL);
        }
        let rings = self.map()?;
        if !rings.is_quiet(number) {
            return Err(Errno::EBUSY);
        }
        let mut queue =
            PacketQueue::new(&self.arena, number, self.queues, self.places, self.policy);
        queue.connect(SwitchEnd::new(Arc::new(rings), number));
        Ok(queue)
    }

    /// Maps the rings.
    ///
    /// # Errors
    ///
    /// Fails if the memory cannot be mapped.
    pub fn map(&self) -> Result<Rings, Errno> {
        Rings::new(&*self.rings, self.places, self.queues)
    }
}
