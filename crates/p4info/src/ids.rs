//! Object ids: the highest byte is the kind, the others are from `@id` or a hash of the name
//! (P4Runtime specification, section 6.3).

use std::collections::BTreeMap;

use p4_syntax::ast::Annotation;

use crate::{Error, texts, v1};

/// Actions.
pub const ACTION: u8 = 0x01;
/// Tables.
pub const TABLE: u8 = 0x02;
/// Value sets.
pub const VALUE_SET: u8 = 0x03;
/// Packet metadata.
pub const CONTROLLER_HEADER: u8 = 0x04;
/// Counters.
pub const COUNTER: u8 = 0x12;
/// Direct counters.
pub const DIRECT_COUNTER: u8 = 0x13;
/// Meters.
pub const METER: u8 = 0x14;
/// Direct meters.
pub const DIRECT_METER: u8 = 0x15;
/// Registers.
pub const REGISTER: u8 = 0x16;
/// Digests.
pub const DIGEST: u8 = 0x17;

/// Mask of the bits below the kind.
const BELOW: u32 = 0x00ff_ffff;

/// Ids of one kind.
pub(crate) struct Ids {
    kind: u8,
    taken: BTreeMap<u32, String>,
}

impl Ids {
    /// Reserves the ids that the program requests, before others are chosen.
    pub(crate) fn new<'a>(
        kind: u8,
        all: impl IntoIterator<Item = (&'a str, &'a [Annotation])>,
    ) -> Result<Self, Error> {
        let mut taken = BTreeMap::new();
        let high = u32::from(kind) << 24;
        for (name, annotations) in all {
            let Some(text) = said(annotations) else { continue };
            let number = number(&text).filter(|id| id & BELOW != 0);
            let fits = number.filter(|id| matches!(id & !BELOW, over if over == 0 || over == high));
            let bad = || Error::BadId(name.to_owned(), text.clone(), kind);
            let id = high | fits.ok_or_else(bad)?;
            if let Some(other) = taken.insert(id, name.to_owned()) {
                return Err(Error::SameId(other, name.to_owned(), id));
            }
        }
        Ok(Self { kind, taken })
    }

    /// Returns the id of the object with this name.
    pub(crate) fn of(&self, name: &str) -> Option<u32> {
        self.taken.iter().find(|(_, taken)| *taken == name).map(|(id, _)| *id)
    }

    /// Creates the preamble of an object. Its alias is set once all objects are known.
    pub(crate) fn preamble(&mut self, name: &str, annotations: &[Annotation]) -> v1::Preamble {
        let kind = u32::from(self.kind) << 24;
        let given = said(annotations).and_then(|_| self.of(name));
        let id = given.unwrap_or_else(|| self.free(kind, name));
        self.taken.insert(id, name.to_owned());
        v1::Preamble {
            id,
            name: name.to_owned(),
            annotations: texts(annotations),
            ..Default::default()
        }
    }

    /// Returns the first unused id, starting at the hash of the name.
    fn free(&self, kind: u32, name: &str) -> u32 {
        let first = fnv(name.as_bytes());
        let all = (0..=BELOW).map(|step| kind | (first.wrapping_add(step) & BELOW));
        let free = all.filter(|id| id & BELOW != 0).find(|id| !self.taken.contains_key(id));
        // A program has fewer objects than there are ids (`p4::ir::MAX_PARTS`).
        free.unwrap_or(kind)
    }
}

/// Returns the argument of `@id(…)`.
fn said(annotations: &[Annotation]) -> Option<String> {
    let id = annotations.iter().find(|one| &*one.name.text == "id")?;
    Some(id.body.concat())
}

/// Returns the number of `@id(…)` for an object with a small id.
pub(crate) fn given(annotations: &[Annotation]) -> Option<u32> {
    said(annotations).and_then(|text| number(&text)).filter(|id| *id != 0)
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// 32-bit FNV-1a hash.
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
