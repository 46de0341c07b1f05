//! p4c's test format, STF: packets that go in, packets that have to come out, and what the control
//! plane does in between. A line is
//!
//! ```text
//! packet PORT HEX
//! expect PORT HEX        # `*` is any digit, `$` at the end: nothing behind it
//! add TABLE [PRIORITY] KEY:VALUE … ACTION(NAME:VALUE, …)   # in place of one with this key
//! add … ACTION(…) = NAME                     # the entry has a name for lines below
//! setdefault TABLE ACTION(VALUE, …)
//! check_counter COUNTER(INDEX) packets == 5  # or bytes; or !=, <, <=, >, >=
//! check_counter COUNTER($NAME) …             # of an entry; $default: of what its table does by default
//! wait                                       # for packets on their way: there are none
//! ```
//!
//! and, which p4c's does not have,
//!
//! ```text
//! set_meter METER(INDEX) CIR CBURST PIR PBURST   # in units a second, units; or of ($NAME)
//! wait NANOSECONDS                           # the clock goes on, which stands still else
//! publish KEY VALUE [age NANOSECONDS] [stale]     # what the tenant's VM says of itself
//! withdraw KEY
//! expect_digest DIGEST HEX                   # the next one; as on the wire, in whole bytes
//! ```
//!
//! Numbers are decimal, `0x…` or `0b…`, `true`, `false`, or 10.0.0.1. A key's value may be `VALUE/BITS`
//! (a prefix), `VALUE&&&MASK`, `FROM..TO`, or have `*` for digits that do not matter. What goes in and
//! passes comes out where it came in.

mod cells;
mod entries;
mod parse;
mod run;
#[cfg(test)]
pub(crate) mod tests;

use num_bigint::BigInt;

use crate::cells::Rates;
use crate::vm::Reading;

#[cfg(test)]
pub(crate) use entries::added;
pub use parse::parse;
pub use run::{Cell, Failure, Runs, run, unread};

/// A line of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1.
    pub number: usize,
    /// What it says.
    pub command: Command,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A packet comes by a port.
    Packet(u32, Vec<u8>),
    /// A packet has to leave by a port.
    Expect(u32, Pattern),
    /// An entry is put in.
    Add {
        /// The table.
        table: String,
        /// Its priority.
        priority: Option<u32>,
        /// The parts of its key: their names, or nothing for one behind the other.
        keys: Vec<(Option<String>, KeyText)>,
        /// What it does.
        action: ActionText,
        /// What lines below call it.
        name: Option<String>,
    },
    /// What a counter has to have counted.
    CheckCounter {
        /// The counter.
        counter: String,
        /// Which of its cells.
        cell: CellText,
        /// What is looked at, how it is compared, and with what; nothing: only whether it is there.
        is: Option<(Counted, Comparison, u64)>,
    },
    /// A meter gets its rates.
    SetMeter(String, CellText, Rates),
    /// The clock goes on by so many nanoseconds.
    Wait(u64),
    /// The next digest of this name has to be this.
    ExpectDigest(String, Pattern),
    /// What a table does where no entry is found.
    SetDefault(String, ActionText),
    /// What the tenant's VM says under a name; None: nothing any more.
    Publish(String, Option<Said>),
}

/// What a tenant's VM says under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// The value.
    pub value: u64,
    /// How long ago it was counted, in nanoseconds.
    pub age_ns: u64,
    /// Whether it is older than it may be.
    pub is_stale: bool,
}

impl Said {
    /// It, said at this time.
    pub fn at(self, now_ns: u64) -> Reading {
        let fresh = Reading::fresh(self.value, self.age_ns, now_ns);
        if self.is_stale { fresh.stale() } else { fresh }
    }
}

/// A cell of a counter or a meter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellText {
    /// By its index.
    Index(u64),
    /// Of the entry of this name.
    Entry(String),
    /// Of what a table does by default.
    Default,
}

/// What of a counter is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

/// How a counter is compared.
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
    /// Those that there are, as they are written.
    pub(crate) const ALL: [(&'static str, Self); 6] = [
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
        ("<=", Self::LessOrEqual),
        (">=", Self::GreaterOrEqual),
        ("<", Self::Less),
        (">", Self::Greater),
    ];

    /// Whether it holds.
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

/// An action with its arguments, by name or one behind the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionText {
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<(Option<String>, BigInt)>,
}

/// What a part of a key is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyText {
    /// This.
    Exact(BigInt),
    /// Its first bits.
    Prefix(BigInt, u32),
    /// Under a mask.
    Mask(BigInt, BigInt),
    /// From and to.
    Range(BigInt, BigInt),
}

/// What a packet has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Half a byte each; None for any.
    pub digits: Vec<Option<u8>>,
    /// Whether nothing may be behind them.
    pub whole: bool,
}

impl Pattern {
    /// Whether a packet is like that.
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

/// A line that says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct BadLine {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}
