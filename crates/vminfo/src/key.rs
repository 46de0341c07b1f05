//! What values are called, and what they count.

use std::fmt;
use std::time::Duration;

use crate::layout::NAME;

/// What a value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// A number, and no more is known.
    #[default]
    Number,
    /// Thousandths of a whole: 300 is 30 %.
    PerMille,
    /// Bytes.
    Bytes,
    /// Bytes in a second.
    BytesPerSecond,
    /// Packets in a second.
    PacketsPerSecond,
    /// Nanoseconds.
    Nanoseconds,
}

impl Unit {
    const ALL: [(u32, Self, &str); 6] = [
        (0, Self::Number, ""),
        (1, Self::PerMille, "per mille"),
        (2, Self::Bytes, "bytes"),
        (3, Self::BytesPerSecond, "bytes/s"),
        (4, Self::PacketsPerSecond, "packets/s"),
        (5, Self::Nanoseconds, "ns"),
    ];

    /// The unit that a number means; one that is not known is none.
    pub(crate) fn from_number(number: u32) -> Self {
        let found = Self::ALL.iter().find(|(one, ..)| *one == number);
        found.map_or(Self::Number, |(_, unit, _)| *unit)
    }

    pub(crate) fn number(self) -> u32 {
        Self::ALL.iter().find(|(_, unit, _)| *unit == self).map_or(0, |(number, ..)| *number)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, unit, _)| unit == self).map_or("", |(.., name)| name);
        f.pad(name)
    }
}

/// The name of a value, with what is always the same of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    name: String,
    /// What the value counts.
    pub unit: Unit,
    /// How long it is fresh.
    pub valid: Duration,
}

/// A name that no key can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no key: letters, digits and `.-_:/@`, at most 63 of them")]
pub struct BadName(pub String);

impl Key {
    /// A key of this name.
    ///
    /// # Errors
    ///
    /// It is no name.
    pub fn new(name: &str, unit: Unit, valid: Duration) -> Result<Self, BadName> {
        match is_name(name) {
            true => Ok(Self { name: name.to_owned(), unit, valid }),
            false => Err(BadName(name.to_owned())),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Whether a key can have this name: letters, digits and `.-_:/@`, at most 63 of them.
pub fn is_name(name: &str) -> bool {
    let is_letter = |c: u8| c.is_ascii_alphanumeric() || b".-_:/@".contains(&c);
    (1..NAME).contains(&name.len()) && name.bytes().all(is_letter)
}
