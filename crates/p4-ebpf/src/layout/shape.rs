//! Layout of a table, computed only from the widths of its parts: both the compiler and a program
//! that has only the P4Info can compute it.

use p4::ir::MatchKind;
use p4_object::cells::{Count, MeterCell};
use p4_object::{MAX_KEY, MapKind};

use super::{Direct, Encoding, KeyPart, Leaf, TableMaps, lay, storage, words_of};

/// Reason that a table does not fit into a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotLaid {
    /// A range that is too wide.
    #[error("a range of {width} bits: the limit is 64")]
    Range {
        /// Index of the key part.
        part: usize,
        /// Width in bits.
        width: u32,
    },
    /// More than one LPM part.
    #[error("this table has more than one prefix")]
    Prefixes,
    /// A key or a value that exceeds the size limit of maps.
    #[error("a key or the arguments of an action take more than {MAX_KEY} bytes")]
    Large,
}

impl TableMaps {
    /// Computes the layout of a table from the parts of its key, the arguments of its actions (both
    /// with widths but without offsets) and its direct resources. The map indices are left open.
    ///
    /// # Errors
    ///
    /// No map can hold the table.
    pub fn of_shape(
        mut keys: Vec<KeyPart>,
        mut actions: Vec<Vec<Vec<Leaf>>>,
        direct: Direct,
    ) -> Result<Self, NotLaid> {
        let arguments = || actions.iter().flatten().flatten();
        let fits = |all: &mut dyn Iterator<Item = &Leaf>| {
            all.map(|leaf| u64::from(leaf.width)).sum::<u64>() <= u64::from(MAX_KEY) * 8
        };
        if !fits(&mut keys.iter().map(|key| &key.leaf))
            || !actions.iter().all(|one| fits(&mut one.iter().flatten()))
        {
            return Err(NotLaid::Large);
        }
        let wide = |key: &KeyPart| key.matched == MatchKind::Range && key.leaf.width > 64;
        if let Some(part) = keys.iter().position(wide) {
            return Err(NotLaid::Range { part, width: keys[part].leaf.width });
        }
        let kind = kind_of(&keys);
        let prefixes = keys.iter().filter(|key| key.matched == MatchKind::Lpm).count();
        if kind == MapKind::LpmTrie && prefixes > 1 {
            return Err(NotLaid::Prefixes);
        }
        // The arguments follow the action index, at an offset aligned for all of them.
        let most = arguments().map(|leaf| storage(leaf.width).1).fold(4, u32::max);
        let (encoding, key_size) = lay_key(kind, &mut keys);
        let (start, mut behind) = (4_u32.next_multiple_of(most), 4);
        for action in &mut actions {
            let mut at = start;
            for argument in action {
                at = lay(argument, at).0;
            }
            behind = behind.max(at);
        }
        let mut value_size = behind.next_multiple_of(most);
        let mut behind = |is_there: bool, bytes: u32| {
            is_there.then(|| {
                let at = value_size.next_multiple_of(8);
                value_size = at + bytes;
                at
            })
        };
        let counter = behind(direct.counter, Count::SIZE);
        let meter = behind(direct.meter, MeterCell::SIZE);
        if value_size > MAX_KEY {
            return Err(NotLaid::Large);
        }
        let (entries, default_action) = (None, None);
        Ok(Self {
            entries,
            default_action,
            encoding,
            keys,
            key_size,
            actions,
            value_size,
            counter,
            meter,
        })
    }

    /// Returns the kind of the map.
    pub fn kind(&self) -> MapKind {
        match self.encoding {
            Encoding::Plain => MapKind::Hash,
            Encoding::Wire => MapKind::LpmTrie,
            Encoding::Words => MapKind::Ternary,
        }
    }
}

/// Returns the map kind for a key.
fn kind_of(keys: &[KeyPart]) -> MapKind {
    let is = |kind: MatchKind| keys.iter().any(|key| key.matched == kind);
    match () {
        () if is(MatchKind::Ternary) || is(MatchKind::Range) || is(MatchKind::Optional) => {
            MapKind::Ternary
        }
        () if is(MatchKind::Lpm) => MapKind::LpmTrie,
        () => MapKind::Hash,
    }
}

/// Lays out the parts of a key. Returns the encoding and the size in bytes.
fn lay_key(kind: MapKind, keys: &mut [KeyPart]) -> (Encoding, u32) {
    match kind {
        MapKind::Ternary => {
            let mut at = 0;
            for key in keys {
                key.leaf.offset = at;
                at += words_of(key.leaf.width) * 8;
            }
            (Encoding::Words, at)
        }
        MapKind::LpmTrie => {
            let mut at = 4;
            for last in [false, true] {
                for key in keys.iter_mut() {
                    if (key.matched == MatchKind::Lpm) == last {
                        key.leaf.offset = at;
                        at += key.leaf.width.div_ceil(8);
                    }
                }
            }
            (Encoding::Wire, at)
        }
        _ => {
            let mut order: Vec<usize> = (0..keys.len()).rev().collect();
            order.sort_by_key(|at| std::cmp::Reverse(keys[*at].leaf.width));
            let mut leaves: Vec<Leaf> = order.iter().map(|at| keys[*at].leaf).collect();
            let (size, most) = lay(&mut leaves, 0);
            for (at, leaf) in order.into_iter().zip(leaves) {
                keys[at].leaf.offset = leaf.offset;
            }
            (Encoding::Plain, size.next_multiple_of(most))
        }
    }
}
