//! STF, p4c's test format: input packets, expected output packets, and control plane operations in
//! between. The commands are
//!
//! ```text
//! packet PORT HEX
//! expect PORT HEX        # `*` matches any digit, `$` at the end: no bytes may follow
//! add TABLE [PRIORITY] KEY:VALUE … ACTION(NAME:VALUE, …)   # replaces an entry with the same key
//! add … ACTION(…) = NAME                     # names the entry for later lines
//! setdefault TABLE ACTION(VALUE, …)
//! check_counter COUNTER(INDEX) packets == 5  # or bytes; or !=, <, <=, >, >=
//! check_counter COUNTER($NAME) …             # cell of an entry; $default: of the default action
//! wait                                       # for packets in flight: there are none
//! ```
//!
//! and, as extensions to p4c's format,
//!
//! ```text
//! set_meter METER(INDEX) CIR CBURST PIR PBURST   # in units a second, units; or of ($NAME)
//! wait NANOSECONDS                           # advances the clock, which otherwise stands still
//! publish KEY VALUE [age NANOSECONDS] [stale]     # a value that the tenant's VM publishes
//! withdraw KEY
//! expect_digest DIGEST HEX                   # the next digest; as on the wire, in whole bytes
//! ```
//!
//! Numbers are decimal, `0x…` or `0b…`, `true`, `false`, or 10.0.0.1. A key's value may be
//! `VALUE/BITS` (a prefix), `VALUE&&&MASK`, `FROM..TO`, or have `*` for digits that do not matter.
//! A packet that passes leaves through its input port.

mod cells;
mod difference;
mod entries;
mod parse;
mod run;
mod target;
#[cfg(test)]
mod tests;

use num_bigint::BigInt;
use p4_object::cells::Rates;
use p4_object::vm::Reading;

pub use entries::added;
pub use parse::parse;
pub use run::{Failure, run, unread};
pub use target::{Cell, Runs};

/// A line of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Line number, from 1.
    pub number: usize,
    /// The command.
    pub command: Command,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Sends a packet on an input port.
    Packet(u32, Vec<u8>),
    /// Expects a packet on an output port.
    Expect(u32, Pattern),
    /// Adds a table entry.
    Add {
        /// Name of the table.
        table: String,
        /// Priority of the entry.
        priority: Option<u32>,
        /// The key fields, each with its name, or by position without one.
        keys: Vec<(Option<String>, KeyText)>,
        /// The action.
        action: ActionText,
        /// Name of the entry for later lines.
        name: Option<String>,
    },
    /// Checks a counter.
    CheckCounter {
        /// Name of the counter.
        counter: String,
        /// The cell to check.
        cell: CellText,
        /// The quantity, the comparison and the expected value. None only checks that the cell
        /// exists.
        is: Option<(Counted, Comparison, u64)>,
    },
    /// Sets the rates of a meter.
    SetMeter(String, CellText, Rates),
    /// Advances the clock by this number of nanoseconds.
    Wait(u64),
    /// Expects the next digest with this name to match the pattern.
    ExpectDigest(String, Pattern),
    /// Sets the default action of a table.
    SetDefault(String, ActionText),
    /// Publishes a value of the tenant's VM under a key; None withdraws it.
    Publish(String, Option<Said>),
}

/// Splits a test into its packets and its control plane commands.
pub fn parts(test: Vec<Line>) -> (Vec<Vec<u8>>, Vec<Line>) {
    let (mut packets, mut lines) = (Vec::new(), Vec::new());
    for line in test {
        match line.command {
            Command::Packet(_, packet) => packets.push(packet),
            Command::Expect(..) | Command::ExpectDigest(..) | Command::CheckCounter { .. } => {}
            _ => lines.push(line),
        }
    }
    (packets, lines)
}

/// A value that a tenant's VM publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// The value.
    pub value: u64,
    /// Age of the value in nanoseconds.
    pub age_ns: u64,
    /// True if the value is older than its maximum age.
    pub is_stale: bool,
}

impl Said {
    /// Returns the value as a reading at this time.
    pub fn at(self, now_ns: u64) -> Reading {
        let fresh = Reading::fresh(self.value, self.age_ns, now_ns);
        if self.is_stale { fresh.stale() } else { fresh }
    }
}

/// A cell of a counter or a meter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellText {
    /// The cell with this index.
    Index(u64),
    /// The cell of the entry with this name.
    Entry(String),
    /// The cell of the default action.
    Default,
}

/// The quantity of a counter to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

/// A comparison of a counter with an expected value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each says what it is")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// All comparisons with their spelling.
    pub(crate) const ALL: [(&'static str, Self); 6] = [
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
        ("<=", Self::LessOrEqual),
        (">=", Self::GreaterOrEqual),
        ("<", Self::Less),
        (">", Self::Greater),
    ];

    /// Returns true if the comparison holds.
    pub fn holds(self, one: u64, other: u64) -> bool {
        match self {
            Self::Equal => one == other,
            Self::NotEqual => one != other,
            Self::Less => one < other,
            Self::LessOrEqual => one <= other,
            Self::Greater => one > other,
            Self::GreaterOrEqual => one >= other,
        }
    }
}

/// An action with its arguments, each by name or by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionText {
    /// Name.
    pub name: String,
    /// Arguments.
    pub arguments: Vec<(Option<String>, BigInt)>,
}

/// The match for a key field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyText {
    /// An exact value.
    Exact(BigInt),
    /// A value and a prefix length.
    Prefix(BigInt, u32),
    /// A value and a mask.
    Mask(BigInt, BigInt),
    /// A lower and an upper bound.
    Range(BigInt, BigInt),
}

/// The expected contents of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Hexadecimal digits; None matches any digit.
    pub digits: Vec<Option<u8>>,
    /// True if no bytes may follow.
    pub whole: bool,
}

impl Pattern {
    /// Returns true if the packet matches.
    pub fn fits(&self, packet: &[u8]) -> bool {
        let digit = |at: usize| packet.get(at / 2).map(|byte| (byte >> (4 * (1 - at % 2))) & 0xf);
        let digits = self.digits.iter().enumerate();
        (!self.whole || self.digits.len() == packet.len() * 2)
            && self.digits.len() <= packet.len() * 2
            && digits.into_iter().all(|(at, wanted)| wanted.is_none() || *wanted == digit(at))
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for digit in &self.digits {
            match digit {
                Some(digit) => write!(f, "{digit:x}")?,
                None => f.write_str("*")?,
            }
        }
        f.write_str(if self.whole { "$" } else { "" })
    }
}

/// An invalid line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct BadLine {
    /// Line number, from 1.
    pub line: usize,
    /// The reason.
    pub why: String,
}
