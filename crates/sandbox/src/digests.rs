//! Digests that a program has emitted, until the control plane fetches them.

use p4_object::MAX_DIGEST;

/// Maximum number of digests pending in an instance: those of one batch of packets.
const WAITING: usize = 256;
/// Maximum size of a digest in bytes.
const MAX_LEN: usize = MAX_DIGEST as usize;

/// A digest for the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Index of the digest in `p4_object::Object::digests`.
    pub id: u32,
    /// Payload, of the size declared for this digest.
    pub data: Vec<u8>,
}

/// Pending digests. All memory is allocated on construction.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Size of each digest in bytes, by id.
    sizes: Box<[u32]>,
    all: Vec<(u32, [u8; MAX_LEN])>,
    /// Number of digests dropped because the queue was full.
    pub(crate) lost: u64,
}

impl Waiting {
    pub(crate) fn new(digests: &[p4_object::Digest]) -> Self {
        let sizes: Box<[u32]> = digests.iter().map(|digest| digest.size).collect();
        let room = if sizes.is_empty() { 0 } else { WAITING };
        Self { sizes, all: Vec::with_capacity(room), lost: 0 }
    }

    /// Size of a digest in bytes; `None` if the id is unknown.
    pub(crate) fn size(&self, id: u64) -> Option<u32> {
        self.sizes.get(usize::try_from(id).ok()?).copied()
    }

    /// Queues a digest of a known id and the declared size.
    pub(crate) fn push(&mut self, id: u32, value: &[u8]) {
        if self.all.len() == self.all.capacity() {
            self.lost += 1;
            return;
        }
        let mut bytes = [0; MAX_LEN];
        bytes[..value.len()].copy_from_slice(value);
        self.all.push((id, bytes));
    }

    /// Drains the queue, oldest first.
    pub(crate) fn take(&mut self, mut with: impl FnMut(u32, &[u8])) {
        for (id, bytes) in self.all.drain(..) {
            let size = self.sizes.get(id as usize).map_or(0, |size| *size as usize);
            with(id, &bytes[..size]);
        }
    }
}
