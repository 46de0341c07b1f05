//! Array map. A key is an index in little-endian byte order, as in objects
//! (`p4_object::Key::index`).

#[derive(Debug)]
pub(crate) struct Array {
    entries: u32,
}

impl Array {
    pub(crate) fn new(entries: u32) -> Self {
        Self { entries }
    }

    pub(crate) fn entries(&self) -> u32 {
        self.entries
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        let index = u32::from_le_bytes(key.try_into().ok()?);
        (index < self.entries).then_some(index)
    }
}
