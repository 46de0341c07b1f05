//! Cells of counters and meters (`crates/p4-syntax/model/kaido.p4`), as stored in maps: each cell is a
//! sequence of 64-bit little-endian words.

mod meter;

pub use meter::{Color, MeterCell, Rates};

/// Value of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes, by the packets' length on input.
    pub bytes: u64,
}

impl Count {
    /// Size of a cell in bytes: packets, then bytes.
    pub const SIZE: u32 = 16;

    /// Serializes the cell.
    pub fn to_bytes(self) -> [u8; Self::SIZE as usize] {
        words([self.packets, self.bytes])
    }

    /// Deserializes a cell; None if it is truncated.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [packets, bytes] = of_words(bytes)?;
        Some(Self { packets, bytes })
    }
}

fn words<const WORDS: usize, const BYTES: usize>(of: [u64; WORDS]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (eight, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(of) {
        *eight = word.to_le_bytes();
    }
    bytes
}

fn of_words<const WORDS: usize>(bytes: &[u8]) -> Option<[u64; WORDS]> {
    let (all, _) = bytes.as_chunks::<8>();
    let all: Vec<u64> = all.iter().take(WORDS).map(|word| u64::from_le_bytes(*word)).collect();
    all.try_into().ok()
}
