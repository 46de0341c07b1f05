//! Keys: names and units of values.

use std::fmt;
use std::time::Duration;

use crate::layout::NAME;

/// Unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// A number without a unit.
    #[default]
    Number,
    /// Thousandths of a whole: 300 is 30 %.
    PerMille,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Packets per second.
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

    /// Returns the unit with this number in the layout; [`Unit::Number`] if it is unknown.
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

/// The name of a value and its constant attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    name: String,
    /// Unit of the value.
    pub unit: Unit,
    /// Time for which a value is fresh.
    pub valid: Duration,
}

/// An invalid name of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid key: use letters, digits and `.-_:/@`, at most 63 of them")]
pub struct BadName(pub String);

impl Key {
    /// Creates a key.
    ///
    /// # Errors
    ///
    /// The name is invalid.
    pub fn new(name: &str, unit: Unit, valid: Duration) -> Result<Self, BadName> {
        match is_name(name) {
            true => Ok(Self { name: name.to_owned(), unit, valid }),
            false => Err(BadName(name.to_owned())),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Returns true if a key may have this name: 1 to 63 letters, digits and `.-_:/@`.
pub fn is_name(name: &str) -> bool {
    let is_letter = |c: u8| c.is_ascii_alphanumeric() || b".-_:/@".contains(&c);
    (1..NAME).contains(&name.len()) && name.bytes().all(is_letter)
}
