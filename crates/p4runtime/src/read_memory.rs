//! Memory of a read's results, counted before it is allocated.

use grpc_bounds::Reservation;

use crate::data::Data;
use crate::device::Match;
use crate::error::{Error, RequestError};
use crate::found::Found;
use crate::store::DefaultRow;
use crate::types::Type;
use crate::v1;

/// Maximum size of one read response in bytes. Clients accept 4 MiB by default.
pub(crate) const ANSWER_BYTES: usize = 1 << 20;

/// Overhead of an allocation in bytes.
const OVERHEAD: u64 = 32;

/// Memory is reserved in steps of this size in bytes.
const STEP: u64 = 64 << 10;

/// Memory of a result and of its device reply, in a `Vec` that doubles.
const RESULT: u64 = 2 * size_of::<Found>() as u64;

/// Memory of the result of a requested entity, in a `Vec` that doubles, and of an error's text.
const ANSWER: u64 = 2 * size_of::<Result<(), Error>>() as u64;
const TEXT: u64 = 512;

/// Upper bound of the encoded size of an entity, which may have 4 KiB of metadata. A value set is
/// counted apart.
const ENTITY: u64 = 8 << 10;

/// Memory that a read reserves for its results.
#[derive(Debug)]
pub(crate) struct ReadMemory {
    reservation: Reservation,
    is_primary: bool,
    used: u64,
    reserved: u64,
}

impl ReadMemory {
    pub(crate) fn new(reservation: Reservation, is_primary: bool) -> Self {
        Self { reservation, is_primary, used: 0, reserved: 0 }
    }

    /// Reserves memory for results, each of which takes `bytes_each` in addition to its own struct.
    pub(crate) fn reserve(&mut self, count: usize, bytes_each: u64) -> Result<(), Error> {
        self.add((count as u64).saturating_mul(RESULT.saturating_add(bytes_each)))
    }

    /// Counts the result of a requested entity, which is kept until the end of the answer.
    pub(crate) fn answer(&mut self, answer: &Result<(), Error>) -> Result<(), Error> {
        self.add(ANSWER + if answer.is_err() { TEXT } else { 0 })
    }

    /// Counts the message being sent, of this number of results or fewer.
    pub(crate) fn message(&mut self, results: usize) -> Result<(), Error> {
        // In a buffer that doubles as it grows.
        self.add((results as u64).saturating_mul(ENTITY).min(2 * ANSWER_BYTES as u64))
    }

    fn add(&mut self, all: u64) -> Result<(), Error> {
        self.used = self.used.saturating_add(all);
        if self.used <= self.reserved {
            return Ok(());
        }
        let wanted = self.used.saturating_add(STEP);
        if !self.reservation.grow(wanted, self.is_primary) {
            return Err(Error::Request(RequestError::AnswerMemory));
        }
        self.reserved = wanted;
        Ok(())
    }
}

/// Memory of a value, without its own struct.
pub(crate) fn data(of: &Type) -> u64 {
    let bits = |width: u32| OVERHEAD + u64::from(width.div_ceil(8));
    match of {
        Type::Bits(field) => bits(field.width),
        Type::Enum(width) => bits(*width),
        Type::Struct(all) | Type::Tuple(all) => {
            let member = |one| size_of::<Data>() as u64 + data(one);
            OVERHEAD + all.iter().map(member).sum::<u64>()
        }
        Type::Header(fields) => {
            OVERHEAD + fields.iter().map(|one| 16 + bits(one.width)).sum::<u64>()
        }
        Type::Bool | Type::Other => 0,
    }
}

/// Memory of a copy of a default entry.
pub(crate) fn default_entry(row: &DefaultRow) -> u64 {
    let arguments = row.call.iter().flat_map(|call| &call.arguments);
    let arguments: u64 = arguments.map(|one| OVERHEAD + 16 + one.len() as u64).sum();
    size_of::<DefaultRow>() as u64 + arguments + row.metadata.len() as u64 + 2 * OVERHEAD
}

/// Memory of the message of a value set, which is one entity of any size.
pub(crate) fn members(all: &[Vec<Match>]) -> u64 {
    let value = |one: &Match| {
        match one {
            Match::Exact(bits) | Match::Optional(Some(bits)) | Match::Lpm { value: bits, .. } => {
                bits
            }
            Match::Ternary { value: bits, .. } | Match::Range { low: bits, .. } => bits,
            Match::Optional(None) => return 0,
        }
        .len() as u64
    };
    let one = |one: &Match| size_of::<v1::FieldMatch>() as u64 + 2 * (OVERHEAD + value(one));
    let member = |member: &Vec<Match>| OVERHEAD + 24 + member.iter().map(one).sum::<u64>();
    // The message, and its encoded form in a buffer that doubles as it grows.
    3 * all.iter().map(member).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use grpc_bounds::Budget;

    use super::*;

    #[test]
    fn results_of_requested_entities_are_counted_until_they_are_sent() {
        let budget = Budget::new(0, 1 << 20);
        let mut memory = ReadMemory::new(budget.empty_reservation(), false);
        let failed = Err(Error::Request(RequestError::NotPrimary));
        let count = (0..10_000).take_while(|_| memory.answer(&failed).is_ok()).count();
        let most = (1 << 20) / size_of::<Result<(), Error>>();
        assert!(count > 500 && count < most, "{count} results");
    }

    #[test]
    fn the_message_being_sent_is_counted() {
        let budget = Budget::new(0, 4 << 20);
        let mut memory = ReadMemory::new(budget.empty_reservation(), false);
        memory.message(1).unwrap();
        assert!(budget.used() < 128 << 10, "{} bytes", budget.used());
        memory.message(1 << 20).unwrap();
        assert!(budget.used() > 2 << 20, "{} bytes", budget.used());
    }

    #[test]
    fn a_refused_reservation_is_refused_again() {
        let budget = Budget::new(0, 4 * STEP);
        let mut memory = ReadMemory::new(budget.empty_reservation(), false);
        memory.reserve(1, STEP).unwrap();
        let used = budget.used();
        for _ in 0..2 {
            let refused = memory.reserve(1, 4 * STEP);
            assert_eq!(refused, Err(Error::Request(RequestError::AnswerMemory)));
        }
        assert_eq!(budget.used(), used, "a refusal reserves nothing");
    }
}
