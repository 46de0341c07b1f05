//! Reads ("Read RPC", "Wildcard Reads"). Results are small and share data with the store. They are
//! converted to messages later, off the device's thread.

mod cells;
mod tables;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tables::Resource;

use crate::cells::no_colors;
use crate::device::{Device, Key};
use crate::error::{BatchError, Error, RequestError, ValueError};
use crate::found::Found;
use crate::pipeline::Pipeline;
use crate::read_memory::{self, ReadMemory};
use crate::store::Store;
use crate::v1::{self, entity};
use crate::write::unsupported;

/// Maximum number of entities that a request may return.
pub(crate) const MAX_FOUND: usize = 1 << 22;

/// Maximum number of entries and other objects that a request may examine. A filter with few
/// results examines as many as one with all results.
pub(crate) const MAX_EXAMINED: usize = 2 * MAX_FOUND;

/// Memory of an entry of a table while it is looked up: it shares its key and its row.
const ENTRY: u64 = 128;

/// Maximum number of cells or entries after which a read checks the time: as many as the process of
/// a program returns for one request.
const AT_ONCE: usize = sandbox::MAX_PIECE;

/// Maximum memory of cells after which a read checks the time: a cell of a register may have many
/// values.
const AT_ONCE_BYTES: u64 = 256 << 10;

/// Executes a read request.
pub(crate) struct Reader<'a, D: Device> {
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) store: &'a Store,
    /// `None` until the program is committed.
    pub(crate) device: Option<&'a mut D>,
    pub(crate) found: &'a mut Vec<Found>,
    pub(crate) looked: &'a mut usize,
    pub(crate) memory: &'a mut ReadMemory,
    /// Position in the first requested entity without a result.
    pub(crate) position: &'a mut Position,
    /// Time at which this part of the read ends.
    pub(crate) until: Option<Instant>,
}

/// Position in a requested entity at which the next part of a read continues: the next id, and the
/// next cell or the last entry of it. The default is the beginning.
#[derive(Debug, Default)]
pub(crate) struct Position {
    id: u32,
    cell: u64,
    row: Option<Arc<Key>>,
}

/// Progress of a part of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All has been read.
    Last,
    /// The time is over.
    NotLast,
}

/// End of a part of a read before the end of the read.
#[derive(Debug)]
enum Stop {
    /// The time is over, and the position is set.
    TimeIsOver,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl<D: Device> Reader<'_, D> {
    /// Adds one result for each entity of a request that has none yet. Fails as a whole if the
    /// request exceeds a limit.
    pub(crate) fn all(
        &mut self,
        asked: &[v1::Entity],
        results: &mut Vec<Result<(), Error>>,
        is_gone: impl Fn() -> bool,
    ) -> Result<Part, Error> {
        for one in &asked[results.len()..] {
            if is_gone() {
                return Err(Error::Batch(BatchError::Disconnected));
            }
            self.look_at(1)?;
            let answer = match self.look(one) {
                Ok(()) => Ok(()),
                Err(Stop::TimeIsOver) => return Ok(Part::NotLast),
                Err(Stop::Failed(
                    error @ (Error::Batch(BatchError::TooMany(_))
                    | Error::Batch(BatchError::TooManyToScan(_))
                    | Error::Request(RequestError::AnswerMemory)),
                )) => return Err(error),
                Err(Stop::Failed(error)) => Err(error),
            };
            *self.position = Position::default();
            self.memory.answer(&answer)?;
            results.push(answer);
            if results.len() < asked.len() && self.is_over() {
                return Ok(Part::NotLast);
            }
        }
        self.memory.message(self.found.len())?;
        Ok(Part::Last)
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Ends this part if its time is over: the next one continues at `position`.
    fn pause(&mut self, position: Position) -> Result<(), Stop> {
        if !self.is_over() {
            return Ok(());
        }
        *self.position = position;
        Err(Stop::TimeIsOver)
    }

    /// Finds the results for one entity of a request.
    fn look(&mut self, asked: &v1::Entity) -> Result<(), Stop> {
        use entity::Entity;
        let asked =
            asked.entity.as_ref().ok_or(Error::Request(RequestError::NotSet("the entity")))?;
        if let Some(what) = unsupported(asked) {
            return Err(Error::Request(RequestError::Unsupported(what)).into());
        }
        match asked {
            Entity::TableEntry(entry) => self.table_entries(entry),
            Entity::CounterEntry(entry) => self.counters(entry),
            Entity::DirectCounterEntry(entry) => {
                self.direct(entry.table_entry.as_ref(), Resource::Counter)
            }
            Entity::MeterEntry(entry) => self.meters(entry),
            Entity::DirectMeterEntry(entry) => {
                no_colors(entry.counter_data.as_ref())?;
                self.direct(entry.table_entry.as_ref(), Resource::Meter)
            }
            Entity::RegisterEntry(entry) => self.registers(entry),
            Entity::ValueSetEntry(entry) => self.value_sets(entry),
            Entity::DigestEntry(entry) => self.digests(entry),
            _ => Err(Error::Request(RequestError::Unspecified("entity")).into()),
        }
    }

    /// Reserves memory for more results, each of which takes `bytes_each` in addition to its own
    /// struct.
    fn reserve(&mut self, count: usize, bytes_each: u64) -> Result<(), Error> {
        check_count(self.found.len() + count)?;
        self.memory.reserve(count, bytes_each)
    }

    fn look_at(&mut self, more: usize) -> Result<(), Error> {
        *self.looked += more;
        match *self.looked > MAX_EXAMINED {
            true => Err(Error::Batch(BatchError::TooManyToScan(MAX_EXAMINED))),
            false => Ok(()),
        }
    }

    /// The device, if the program is committed.
    fn device(&mut self) -> Result<&mut D, Error> {
        self.device.as_deref_mut().ok_or(Error::Request(RequestError::NotCommitted))
    }

    /// Reads each object that a request refers to, from the position: one, or all if the id is 0.
    fn each<T>(
        &mut self,
        id: u32,
        kind: &'static str,
        all: &BTreeMap<u32, T>,
        mut read: impl FnMut(&mut Self, u32) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        if id != 0 {
            return match all.contains_key(&id) {
                true => read(self, id),
                false => Err(Error::Value(ValueError::UnknownId { kind, id }).into()),
            };
        }
        let mut ids = all.range(self.position.id..).map(|(id, _)| *id).peekable();
        while let Some(id) = ids.next() {
            self.look_at(1)?;
            read(self, id)?;
            if let Some(next) = ids.peek() {
                self.pause(Position { id: *next, ..Position::default() })?;
            }
        }
        Ok(())
    }

    fn value_sets(&mut self, asked: &v1::ValueSetEntry) -> Result<(), Stop> {
        let pipeline = self.pipeline;
        self.each(asked.value_set_id, "value set", &pipeline.value_sets, |this, id| {
            let members = this.store.sets.get(&id).cloned().unwrap_or_default();
            this.reserve(1, read_memory::members(&members))?;
            this.found.push(Found::ValueSet { id, members });
            Ok(())
        })
    }

    fn digests(&mut self, asked: &v1::DigestEntry) -> Result<(), Stop> {
        let pipeline = self.pipeline;
        self.each(asked.digest_id, "digest", &pipeline.digests, |this, id| {
            if let Some(config) = this.store.digests.get(&id) {
                this.reserve(1, 0)?;
                this.found.push(Found::Digest { id, config: *config });
            }
            Ok(())
        })
    }
}

/// Fails if this is more than the results of one request.
fn check_count(total: usize) -> Result<(), Error> {
    match total > MAX_FOUND {
        true => Err(Error::Batch(BatchError::TooMany(MAX_FOUND))),
        false => Ok(()),
    }
}
