//! Values of an array that a control plane has set.

use std::collections::BTreeMap;

use crate::control::Operation;

/// Number of values of a chunk.
const CHUNK: u32 = u64::BITS;

/// The values of an array that a control plane has set, and those that it starts with. It takes at most
/// the memory of the array and a few percent more: one operation for each value takes some 300 bytes.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    /// Size of a value in bytes.
    size: usize,
    /// Values of the program, by index.
    initial: BTreeMap<u32, Vec<u8>>,
    is_cleared: bool,
    /// Number of values that have been set to one value, and the value. Chunks count after it.
    fill: Option<(u32, Vec<u8>)>,
    chunks: BTreeMap<u32, Chunk>,
}

/// [`CHUNK`] consecutive values.
#[derive(Debug, Clone)]
struct Chunk {
    /// A bit for each value that has been set.
    set: u64,
    bytes: Box<[u8]>,
}

impl Cells {
    pub(super) fn new(size: u32) -> Self {
        let (initial, chunks) = (BTreeMap::new(), BTreeMap::new());
        Self { size: (size as usize).max(1), initial, is_cleared: false, fill: None, chunks }
    }

    /// Adds a value that the array starts with. Of several ones with the same index, the last one counts.
    pub(super) fn set_initial(&mut self, index: u32, value: Vec<u8>) {
        self.initial.insert(index, value);
    }

    /// Values that the array starts with.
    pub(super) fn initial(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.initial.iter().map(|(index, value)| (*index, &**value))
    }

    /// Sets consecutive values.
    pub(super) fn set(&mut self, first: u32, bytes: &[u8]) {
        let size = self.size;
        for (index, value) in (first..).zip(bytes.chunks_exact(size)) {
            self.write(index, 0, value);
        }
    }

    /// Sets bytes of a value. The other ones are those of a new process.
    pub(super) fn write(&mut self, index: u32, at: u32, bytes: &[u8]) {
        let (size, place) = (self.size, (index % CHUNK) as usize);
        if !self.chunks.contains_key(&(index / CHUNK)) {
            let chunk = self.new_chunk(index / CHUNK);
            self.chunks.insert(index / CHUNK, chunk);
        }
        let Some(chunk) = self.chunks.get_mut(&(index / CHUNK)) else { return };
        let from = place * size + at as usize;
        // The write has succeeded, so it is in range.
        if let Some(part) = chunk.bytes.get_mut(from..from + bytes.len()) {
            part.copy_from_slice(bytes);
        }
        chunk.set |= 1 << place;
    }

    /// Returns a chunk without a set value, with the values of a new process.
    fn new_chunk(&self, number: u32) -> Chunk {
        let mut bytes = vec![0; CHUNK as usize * self.size].into_boxed_slice();
        for (index, value) in (number * CHUNK..).zip(bytes.chunks_exact_mut(self.size)) {
            let filled = self.fill.as_ref().filter(|(count, _)| index < *count);
            let initial = self.initial.get(&index).filter(|_| !self.is_cleared);
            if let Some(own) = filled.map(|(_, value)| value).or(initial) {
                value.copy_from_slice(own);
            }
        }
        Chunk { set: 0, bytes }
    }

    /// Sets the first `count` values to one value.
    pub(super) fn fill(&mut self, count: u32, value: Vec<u8>) {
        if self.fill.as_ref().is_some_and(|(before, _)| count < *before) {
            (0..count).for_each(|index| self.write(index, 0, &value));
            return;
        }
        for (number, chunk) in self.chunks.range_mut(..=count / CHUNK) {
            for (place, old) in (0..CHUNK).zip(chunk.bytes.chunks_exact_mut(self.size)) {
                if number * CHUNK + place < count {
                    old.copy_from_slice(&value);
                    chunk.set &= !(1 << place);
                }
            }
        }
        self.chunks.retain(|_, chunk| chunk.set != 0);
        self.fill = Some((count, value));
    }

    /// Sets all values to zero.
    pub(super) fn clear(&mut self) {
        (self.is_cleared, self.fill) = (true, None);
        self.chunks.clear();
    }

    /// Returns the operations that set the values in a new process.
    pub(super) fn operations(&self, map: u32) -> impl Iterator<Item = Operation> {
        let clear = self.is_cleared.then_some(Operation::Clear { map });
        let fill = self.fill.clone();
        let fill = fill.map(|(count, value)| Operation::Fill { map, count, value });
        let chunks = self.chunks.iter();
        let values = chunks.flat_map(move |(number, chunk)| {
            runs(chunk.set).map(move |(from, count)| {
                let bytes = chunk.bytes[from * self.size..][..count * self.size].to_vec();
                // A place is below 64.
                Operation::Values { map, first: number * CHUNK + from as u32, bytes }
            })
        });
        clear.into_iter().chain(fill).chain(values)
    }
}

/// Places and lengths of the runs of ones.
fn runs(bits: u64) -> impl Iterator<Item = (usize, usize)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let left = bits.checked_shr(from).unwrap_or_default();
        if left == 0 {
            return None;
        }
        let begin = from + left.trailing_zeros();
        let count = (bits >> begin).trailing_ones();
        from = begin + count;
        Some((begin as usize, count as usize))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(first: u32, bytes: &[u8]) -> Operation {
        Operation::Values { map: 0, first, bytes: bytes.to_vec() }
    }

    fn fill(count: u32, value: u8) -> Operation {
        Operation::Fill { map: 0, count, value: vec![value; 2] }
    }

    fn operations(cells: &Cells) -> Vec<Operation> {
        cells.operations(0).collect()
    }

    #[test]
    fn consecutive_values_are_one_operation() {
        let mut cells = Cells::new(2);
        cells.set(4, &[1; 2]);
        cells.set(0, &[2; 6]);
        cells.set(2, &[4; 2]);
        assert_eq!(operations(&cells), [values(0, &[2, 2, 2, 2, 4, 4]), values(4, &[1; 2])]);
        cells.set(62, &[7; 6]);
        assert_eq!(operations(&cells)[2..], [values(62, &[7; 4]), values(64, &[7; 2])]);
        cells.clear();
        assert_eq!(operations(&cells), [Operation::Clear { map: 0 }]);
    }

    #[test]
    fn a_fill_removes_earlier_values_of_its_range() {
        let mut cells = Cells::new(2);
        cells.set(1, &[1; 2]);
        cells.set(4, &[1; 2]);
        cells.fill(2, vec![2; 2]);
        cells.fill(3, vec![3; 2]);
        cells.set(1, &[4; 2]);
        assert_eq!(operations(&cells), [fill(3, 3), values(1, &[4; 2]), values(4, &[1; 2])]);
        // A shorter one keeps the rest of the longer one.
        cells.fill(1, vec![5; 2]);
        let all = [fill(3, 3), values(0, &[5, 5, 4, 4]), values(4, &[1; 2])];
        assert_eq!(operations(&cells), all);
        cells.fill(1000, vec![6; 2]);
        assert_eq!(operations(&cells), [fill(1000, 6)]);
    }

    #[test]
    fn partial_writes_keep_the_values_of_a_new_process() {
        let mut cells = Cells::new(2);
        cells.set_initial(3, vec![1, 2]);
        cells.write(3, 1, &[9]);
        cells.write(70, 0, &[8]);
        assert_eq!(operations(&cells), [values(3, &[1, 9]), values(70, &[8, 0])]);
        cells.fill(100, vec![5; 2]);
        cells.write(70, 0, &[7]);
        assert_eq!(operations(&cells), [fill(100, 5), values(70, &[7, 5])]);
        cells.clear();
        cells.write(3, 1, &[9]);
        assert_eq!(operations(&cells), [Operation::Clear { map: 0 }, values(3, &[0, 9])]);
    }

    /// Once, each of these values took 330 bytes.
    #[test]
    fn many_values_take_the_memory_of_the_array() {
        let mut cells = Cells::new(8);
        (0..1 << 20).for_each(|index| cells.set(index, &[1; 8]));
        let memory: usize = cells.chunks.values().map(|chunk| chunk.bytes.len() + 40).sum();
        assert!(memory < (8 << 20) * 11 / 10, "{memory}");
    }
}
