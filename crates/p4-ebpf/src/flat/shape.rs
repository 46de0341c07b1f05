//! Number of 64-bit slots that a value of a type occupies, and the slots of its parts.

use std::ops::Range;

use p4::ir::{Program, RecordKind, Type};

use super::Size;
use super::build::Slot;

/// Slots of a header: its validity bit, and the byte offset in the packet where it was extracted.
pub(super) const VALID: u32 = 0;
pub(super) const ORIGIN: u32 = 1;
/// Number of slots before a header's fields.
const HEADER: u32 = 2;
/// Number of slots before a stack's elements: `nextIndex`, the element that is extracted next.
const STACK: u32 = 1;
/// Value of [`ORIGIN`] for a header that was never extracted.
pub(super) const NOWHERE: u64 = u64::MAX;

/// Number of 64-bit limbs of a number of `width` bits.
pub(crate) fn limbs(width: u32) -> u32 {
    width.div_ceil(64)
}

/// A 64-bit mask with the lowest `width` bits set.
pub(super) fn ones(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// Number of bits in limb `at` of a number of `width` bits.
pub(super) fn limb_bits(width: u32, at: u32) -> u32 {
    (width - at * 64).min(64)
}

/// Splits a range of bytes into power-of-two accesses, largest first; returns the offset and size
/// of each.
pub(super) fn chunks(first: u32, count: u32) -> Vec<(u32, Size)> {
    let (mut at, mut left) = (first, count);
    let mut all = Vec::new();
    while left > 0 {
        let size = [8, 4, 2, 1].into_iter().find(|size| u32::from(*size) <= left).unwrap_or(1);
        all.push((at, size));
        at += u32::from(size);
        left -= u32::from(size);
    }
    all
}

/// Slots of the values of a program's types.
pub(super) trait Slots {
    /// Returns the number of slots that a value of the type occupies.
    fn slots(&self, of: &Type) -> u32;

    /// Returns the parts of a type, each with its slot range.
    fn placed_parts(&self, of: &Type) -> Vec<(Type, Range<Slot>)>;

    /// Returns the slot range of one part: the field with index `at`, or that element of a stack.
    fn placed_part(&self, of: &Type, at: usize) -> (Type, Range<Slot>);
}

impl Slots for Program {
    fn slots(&self, of: &Type) -> u32 {
        match of {
            Type::Bits { width, .. } => limbs(*width),
            Type::Bool | Type::Error | Type::Integer => 1,
            // The length in bits, and the byte offset in the packet where the varbit begins.
            Type::Varbit(_) => 2,
            Type::Enum(id) => match &self.enums[id.index()].representation {
                Some(of) => self.slots(of),
                None => 1,
            },
            Type::New(id) => self.slots(&self.new_types[id.index()].of),
            Type::Stack(of, size) => STACK + self.slots(of).saturating_mul(*size),
            Type::Tuple(all) => all.iter().map(|one| self.slots(one)).sum(),
            Type::Record(id) => {
                let record = &self.records[id.index()];
                let fields: u32 = record.fields.iter().map(|one| self.slots(&one.of)).sum();
                fields + if record.kind == RecordKind::Header { HEADER } else { 0 }
            }
            _ => 0,
        }
    }

    fn placed_parts(&self, of: &Type) -> Vec<(Type, Range<Slot>)> {
        let mut at = match of {
            Type::Stack(..) => STACK,
            _ if self.is_header(of) => HEADER,
            _ => 0,
        };
        let place = |of: Type| {
            let start = at;
            at += self.slots(&of);
            (of, start..at)
        };
        self.parts(of).into_iter().map(place).collect()
    }

    fn placed_part(&self, of: &Type, at: usize) -> (Type, Range<Slot>) {
        match of {
            Type::Stack(element, _) => {
                let size = self.slots(element);
                let start = STACK + size * at as u32;
                ((**element).clone(), start..start + size)
            }
            _ => self.placed_parts(of).swap_remove(at),
        }
    }
}
