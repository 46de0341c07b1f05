//! What programs have for the control plane, until somebody takes it.

use p4::object::MAX_DIGEST;

/// Values that wait within an instance, at most: a program's own for a batch of packets.
const WAITING: usize = 256;
/// Bytes of a value, at most.
const MOST: usize = MAX_DIGEST as usize;

/// A value for the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Which of the program's digests (`p4::object::Object::digests`), by its place.
    pub id: u32,
    /// As many bytes as that one has.
    pub data: Vec<u8>,
}

/// Values that wait. All memory is taken at the beginning.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The bytes of each digest.
    sizes: Box<[u32]>,
    all: Vec<(u32, [u8; MOST])>,
    /// Values for which there was no room.
    pub(crate) lost: u64,
}

impl Waiting {
    pub(crate) fn new(digests: &[p4::object::Digest]) -> Self {
        let sizes: Box<[u32]> = digests.iter().map(|digest| digest.size).collect();
        let room = if sizes.is_empty() { 0 } else { WAITING };
        Self { sizes, all: Vec::with_capacity(room), lost: 0 }
    }

    /// The bytes of a digest; None if there is none of this id.
    pub(crate) fn size(&self, id: u64) -> Option<u32> {
        self.sizes.get(usize::try_from(id).ok()?).copied()
    }

    /// Adds a value of a digest that is known to be there, with as many bytes.
    pub(crate) fn push(&mut self, id: u32, value: &[u8]) {
        if self.all.len() == self.all.capacity() {
            self.lost += 1;
            return;
        }
        let mut bytes = [0; MOST];
        bytes[..value.len()].copy_from_slice(value);
        self.all.push((id, bytes));
    }

    /// Takes all that waits, oldest first.
    pub(crate) fn take(&mut self, mut with: impl FnMut(u32, &[u8])) {
        for (id, bytes) in self.all.drain(..) {
            let size = self.sizes.get(id as usize).map_or(0, |size| *size as usize);
            with(id, &bytes[..size]);
        }
    }
}
