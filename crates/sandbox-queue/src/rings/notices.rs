//! Messages and digests: the part of the rings that controls the process.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use p4_object::MAX_DIGEST;

use super::{DIGESTS, DIGESTS_LOST, DIGESTS_PUT, DIGESTS_TAKEN, MESSAGES, Rings, halves};

/// The part of the rings that controls the process: announcements of messages, and digests.
#[derive(Debug)]
pub struct Notices {
    rings: Arc<Rings>,
    digests: u32,
}

impl Notices {
    /// Uses the rings of a new process.
    pub fn new(rings: Arc<Rings>) -> Self {
        Self { rings, digests: 0 }
    }

    /// Announces a message on the control socket.
    pub fn announce(&self) {
        self.rings.word(MESSAGES).fetch_add(1, Ordering::Release);
        self.rings.wake();
    }

    /// Number of pending digests; `None` if the index is invalid.
    pub fn digests(&self) -> Option<u32> {
        let all = self.rings.word(DIGESTS_PUT).load(Ordering::Acquire);
        let new = all.wrapping_sub(self.digests);
        (new <= DIGESTS).then_some(new)
    }

    /// Takes the next digest, which must be pending: its id, its length, and the whole buffer.
    /// Untrusted: id and length may have any value.
    pub fn take_digest(&mut self) -> (u32, u32, [u8; MAX_DIGEST as usize]) {
        let [head, words @ ..] = self.rings.digest(self.digests);
        let (id, length) = halves(head.load(Ordering::Relaxed));
        let mut bytes = [0; MAX_DIGEST as usize];
        for (eight, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *eight = word.load(Ordering::Relaxed).to_le_bytes();
        }
        self.digests = self.digests.wrapping_add(1);
        (id, length, bytes)
    }

    /// Publishes the consumer index of digests.
    pub fn took_digests(&self) {
        self.rings.word(DIGESTS_TAKEN).store(self.digests, Ordering::Release);
    }

    /// Number of lost digests as reported by the process.
    pub fn lost_digests(&self) -> u32 {
        self.rings.word(DIGESTS_LOST).load(Ordering::Relaxed)
    }
}
