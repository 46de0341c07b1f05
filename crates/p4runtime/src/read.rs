//! Reads ("Read RPC", "Wildcard Reads"). Results are small and share data with the store. They are
//! converted to messages later, off the device's thread.

use std::ops::{Bound, Range};
use std::sync::Arc;
use std::time::Instant;

use crate::cells::{self, no_colors};
use crate::data::Data;
use crate::device::{Count, Device, Key, Target};
use crate::entries::cookie;
use crate::error::{BatchError, EntryError, Error, RequestError, ValueError, named};
use crate::found::Found;
use crate::matches;
use crate::pipeline::{Pipeline, Table};
use crate::read_memory::{self, ReadMemory};
use crate::store::{Row, Store, TableState};
use crate::targets;
use crate::v1::{self, entity, table_action};
use crate::write::unsupported;

/// Maximum number of entities that a request may return.
pub(crate) const MOST_FOUND: usize = 1 << 22;

/// Maximum number of entries and other objects that a request may examine. A filter with few
/// results examines as many as one with all results.
pub(crate) const MOST_LOOKED: usize = 2 * MOST_FOUND;

/// Memory of an entry of a table while it is looked up: it shares its key and its row.
const ENTRY: u64 = 128;

/// Number of cells or entries after which a read checks the time. The counters of a table's entries
/// are read at once: a device may read all of them for a few.
const AT_ONCE: usize = 4096;

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
            let answer = match self.look_at(1).and_then(|()| self.look(one)) {
                Ok(Part::NotLast) => return Ok(Part::NotLast),
                Ok(Part::Last) => Ok(()),
                Err(
                    error @ (Error::Batch(BatchError::TooMany(_))
                    | Error::Batch(BatchError::TooManyToScan(_))
                    | Error::Request(RequestError::AnswerMemory)),
                ) => return Err(error),
                Err(error) => Err(error),
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

    /// Finds the results for one entity of a request.
    fn look(&mut self, asked: &v1::Entity) -> Result<Part, Error> {
        use entity::Entity;
        let asked =
            asked.entity.as_ref().ok_or(Error::Request(RequestError::NotSet("the entity")))?;
        if let Some(what) = unsupported(asked) {
            return Err(Error::Request(RequestError::Unsupported(what)));
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
            _ => Err(Error::Request(RequestError::Unspecified("entity"))),
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
        match *self.looked > MOST_LOOKED {
            true => Err(Error::Batch(BatchError::TooManyToScan(MOST_LOOKED))),
            false => Ok(()),
        }
    }

    /// Ids that a request refers to, from the position: one, or all if the id is 0.
    fn ids<T>(
        &mut self,
        id: u32,
        kind: &'static str,
        all: &std::collections::BTreeMap<u32, T>,
    ) -> Result<Vec<u32>, Error> {
        match id {
            0 => {
                self.look_at(all.len())?;
                Ok(all.range(self.position.id..).map(|(id, _)| *id).collect())
            }
            id if all.contains_key(&id) => Ok(vec![id]),
            id => Err(Error::Value(ValueError::UnknownId { kind, id })),
        }
    }

    // ---- tables ----

    fn table_entries(&mut self, asked: &v1::TableEntry) -> Result<Part, Error> {
        let (pipeline, store) = (self.pipeline, self.store);
        if asked.meter_counter_data.is_some() {
            return Err(Error::Request(RequestError::Unsupported("counters of meters' colors")));
        }
        if asked.table_id == 0 && filters(asked) {
            return Err(Error::Entry(EntryError::AllTables));
        }
        for id in self.ids(asked.table_id, "table", &pipeline.tables)? {
            let (table, state) = targets::table(pipeline, store, id)?;
            if asked.time_since_last_hit.is_some() || asked.idle_timeout_ns != 0 {
                return Err(Error::Entry(EntryError::NoIdleTimeout(named(&table.name))));
            }
            let counts = asked.counter_data.is_some() && table.counter;
            let meter = asked.meter_config.is_some() && table.meter.is_some();
            if asked.is_default_action {
                if filters(asked) {
                    return Err(Error::Entry(EntryError::DefaultHasKey));
                }
                let of = [Target::Default];
                let count = if counts { self.direct_counts(id, &of)?.pop() } else { None };
                self.reserve(1, read_memory::default_entry(&state.default))?;
                let row = Box::new(state.default.clone());
                self.found.push(Found::Default { table: id, row, count, meter });
                continue;
            }
            let action = action_filter(asked)?;
            let wanted = |row: &Row| {
                action.is_none_or(|action| row.call.action == action)
                    && (cookie(asked) == 0 || cookie(asked) == row.cookie)
                    && (asked.metadata.is_empty() || asked.metadata == row.metadata)
            };
            loop {
                let rows = self.rows(id, (table, state), asked, !counts, wanted)?;
                let mut counts = match counts {
                    true => {
                        let of: Vec<_> =
                            rows.iter().map(|(key, _)| Target::Entry(Arc::clone(key))).collect();
                        self.direct_counts(id, &of)?.into_iter().map(Some).collect()
                    }
                    false => Vec::new(),
                }
                .into_iter();
                self.found.extend(rows.into_iter().map(|(key, row)| {
                    let count = counts.next().flatten();
                    Found::Row { table: id, key, row, count, meter }
                }));
                match self.position.row {
                    None => break,
                    Some(_) if self.is_over() => return Ok(Part::NotLast),
                    Some(_) => {}
                }
            }
        }
        Ok(Part::Last)
    }

    /// Entries of a table that match the request and the predicate: all, or some if `in_parts`.
    /// Sets the position to the last one, or to none at the end of the table.
    fn rows(
        &mut self,
        id: u32,
        (table, state): (&Table, &TableState),
        asked: &v1::TableEntry,
        in_parts: bool,
        wanted: impl Fn(&Row) -> bool,
    ) -> Result<Vec<Entry>, Error> {
        let after = self.position.row.take();
        let most = if in_parts { AT_ONCE } else { usize::MAX };
        let (mut found, mut last) = (Vec::new(), None::<&Arc<Key>>);
        for (number, (key, row)) in rows(table, state, asked, after.as_ref())?.enumerate() {
            if number == most {
                *self.position = Position { id, row: last.cloned(), ..Position::default() };
                break;
            }
            self.look_at(1)?;
            if (asked.priority == 0 || asked.priority == key.priority) && wanted(row) {
                check_count(self.found.len() + found.len() + 1)?;
                self.memory.reserve(1, ENTRY)?;
                found.push((Arc::clone(key), Arc::clone(row)));
            }
            last = Some(key);
        }
        Ok(found)
    }

    fn direct_counts(&mut self, table: u32, of: &[Target]) -> Result<Vec<Count>, Error> {
        let device = self.device.as_mut().ok_or(Error::Request(RequestError::NotCommitted))?;
        let mut counts = device.direct_counters(table, of)?;
        counts.resize(of.len(), Count::default());
        Ok(counts)
    }

    /// Direct counters or meters: of all tables, of a table, or of one entry.
    fn direct(&mut self, asked: Option<&v1::TableEntry>, what: Resource) -> Result<Part, Error> {
        let (pipeline, store) = (self.pipeline, self.store);
        let asked = asked.ok_or(Error::Request(RequestError::NotSet("the table entry")))?;
        if asked.table_id == 0 && filters(asked) {
            return Err(Error::Entry(EntryError::AllTables));
        }
        for id in self.ids(asked.table_id, "table", &pipeline.tables)? {
            let (table, state) = targets::table(pipeline, store, id)?;
            let has = match what {
                Resource::Counter => table.counter,
                Resource::Meter => table.meter.is_some(),
            };
            if !has {
                match asked.table_id {
                    0 => continue,
                    _ => {
                        return Err(Error::Entry(EntryError::NoDirect(
                            named(&table.name),
                            what.name(),
                        )));
                    }
                }
            }
            // Entries have their reservation.
            self.reserve(usize::from(asked.is_default_action), 0)?;
            loop {
                let is_first = self.position.row.is_none();
                let of: Vec<Target> = if asked.is_default_action {
                    vec![Target::Default]
                } else {
                    let in_parts = matches!(what, Resource::Meter);
                    let rows = self.rows(id, (table, state), asked, in_parts, |_| true)?;
                    rows.into_iter().map(|(key, _)| Target::Entry(key)).collect()
                };
                if is_first && of.is_empty() && !asked.r#match.is_empty() {
                    return Err(Error::Entry(EntryError::NoEntry(named(&table.name))));
                }
                self.found_direct(id, state, of, what)?;
                match self.position.row {
                    None => break,
                    Some(_) if self.is_over() => return Ok(Part::NotLast),
                    Some(_) => {}
                }
            }
        }
        Ok(Part::Last)
    }

    fn found_direct(
        &mut self,
        id: u32,
        state: &TableState,
        of: Vec<Target>,
        what: Resource,
    ) -> Result<(), Error> {
        match what {
            Resource::Counter => {
                let counts = self.direct_counts(id, &of)?;
                let both = of.into_iter().zip(counts);
                let found = both.map(|(of, count)| Found::DirectCounter { table: id, of, count });
                self.found.extend(found);
            }
            Resource::Meter => {
                let meter = |of: &Target| match of {
                    Target::Entry(key) => state.rows.get(key).and_then(|row| row.meter),
                    Target::Default => state.default.meter,
                };
                let found = of.into_iter().map(|of| {
                    let meter = meter(&of);
                    Found::DirectMeter { table: id, of, meter }
                });
                self.found.extend(found);
            }
        }
        Ok(())
    }

    // ---- arrays ----

    fn counters(&mut self, asked: &v1::CounterEntry) -> Result<Part, Error> {
        let pipeline = self.pipeline;
        for id in self.ids(asked.counter_id, "counter", &pipeline.counters)? {
            let array = cells::counter(pipeline, id)?;
            let of = (asked.counter_id, id, &*array.name, array.size);
            let part = self.cells(of, asked.index.as_ref(), 0, |this, at| {
                let device =
                    this.device.as_mut().ok_or(Error::Request(RequestError::NotCommitted))?;
                let counts = at.clone().zip(device.counters(id, at)?);
                this.found.extend(counts.map(|(at, count)| Found::Counter { id, at, count }));
                Ok(())
            });
            if part? == Part::NotLast {
                return Ok(Part::NotLast);
            }
        }
        Ok(Part::Last)
    }

    fn meters(&mut self, asked: &v1::MeterEntry) -> Result<Part, Error> {
        let (pipeline, store) = (self.pipeline, self.store);
        no_colors(asked.counter_data.as_ref())?;
        for id in self.ids(asked.meter_id, "meter", &pipeline.meters)? {
            let array = cells::meter_array(pipeline, id)?;
            let of = (asked.meter_id, id, &*array.name, array.size);
            let state = store.meters.get(&id);
            let part = self.cells(of, asked.index.as_ref(), 0, |this, at| {
                let meter = |at| state.and_then(|state| state.get(at));
                this.found.extend(at.map(|at| Found::Meter { id, at, meter: meter(at) }));
                Ok(())
            });
            if part? == Part::NotLast {
                return Ok(Part::NotLast);
            }
        }
        Ok(Part::Last)
    }

    fn registers(&mut self, asked: &v1::RegisterEntry) -> Result<Part, Error> {
        let pipeline = self.pipeline;
        for id in self.ids(asked.register_id, "register", &pipeline.registers)? {
            // A wildcard read skips registers of unsupported types.
            if asked.register_id == 0 && !pipeline.registers[&id].of.is_known() {
                continue;
            }
            let register = cells::register(pipeline, id)?;
            let bytes = size_of::<Data>() as u64 + read_memory::data(&register.of);
            let of = (asked.register_id, id, &*register.name, register.size);
            let part = self.cells(of, asked.index.as_ref(), bytes, |this, at| {
                let device =
                    this.device.as_mut().ok_or(Error::Request(RequestError::NotCommitted))?;
                let values = at.clone().zip(device.registers(id, at)?);
                let found =
                    values.map(|(at, data)| Found::Register { id, at, data: Box::new(data) });
                this.found.extend(found);
                Ok(())
            });
            if part? == Part::NotLast {
                return Ok(Part::NotLast);
            }
        }
        Ok(Part::Last)
    }

    /// Reads the cells that a request refers to, from the position: one, or all. Each result takes
    /// `bytes` in addition to its own struct.
    fn cells(
        &mut self,
        (asked, id, name, size): (u32, u32, &str, u64),
        index: Option<&v1::Index>,
        bytes: u64,
        mut read: impl FnMut(&mut Self, Range<u64>) -> Result<(), Error>,
    ) -> Result<Part, Error> {
        if asked == 0 && index.is_some() {
            return Err(Error::Request(RequestError::NotSet("the id that the index belongs to")));
        }
        let mut at = match cells::index(index, name, size)? {
            Some(at) => at..at + 1,
            None => 0..size,
        };
        if self.position.id == id {
            at.start = at.start.max(self.position.cell);
        }
        while !at.is_empty() {
            let next = at.end.min(at.start + AT_ONCE as u64);
            self.reserve((next - at.start) as usize, bytes)?;
            read(self, at.start..next)?;
            at.start = next;
            if !at.is_empty() && self.is_over() {
                *self.position = Position { id, cell: next, ..Position::default() };
                return Ok(Part::NotLast);
            }
        }
        Ok(Part::Last)
    }

    // ---- other entities ----

    fn value_sets(&mut self, asked: &v1::ValueSetEntry) -> Result<Part, Error> {
        for id in self.ids(asked.value_set_id, "value set", &self.pipeline.value_sets)? {
            let members = self.store.sets.get(&id).cloned().unwrap_or_default();
            self.reserve(1, read_memory::members(&members))?;
            self.found.push(Found::ValueSet { id, members });
        }
        Ok(Part::Last)
    }

    fn digests(&mut self, asked: &v1::DigestEntry) -> Result<Part, Error> {
        for id in self.ids(asked.digest_id, "digest", &self.pipeline.digests)? {
            if let Some(config) = self.store.digests.get(&id) {
                self.reserve(1, 0)?;
                self.found.push(Found::Digest { id, config: *config });
            }
        }
        Ok(Part::Last)
    }
}

/// Fails if this is more than the results of one request.
fn check_count(total: usize) -> Result<(), Error> {
    match total > MOST_FOUND {
        true => Err(Error::Batch(BatchError::TooMany(MOST_FOUND))),
        false => Ok(()),
    }
}

#[derive(Clone, Copy)]
enum Resource {
    Counter,
    Meter,
}

impl Resource {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Meter => "meter",
        }
    }
}

/// True if the request selects entries by more than the table.
fn filters(asked: &v1::TableEntry) -> bool {
    !asked.r#match.is_empty()
        || asked.action.is_some()
        || asked.priority != 0
        || cookie(asked) != 0
        || !asked.metadata.is_empty()
}

fn action_filter(asked: &v1::TableEntry) -> Result<Option<u32>, Error> {
    match asked.action.as_ref().and_then(|action| action.r#type.as_ref()) {
        None => Ok(None),
        Some(table_action::Type::Action(action)) => {
            Ok(Some(action.action_id).filter(|id| *id != 0))
        }
        Some(_) => Err(Error::Request(RequestError::Unsupported("action profiles"))),
    }
}

/// A table entry.
type Entry = (Arc<Key>, Arc<Row>);

type Rows<'a> = Box<dyn Iterator<Item = (&'a Arc<Key>, &'a Arc<Row>)> + 'a>;

/// Candidate entries of a table after one of them, by the requested match and priority.
fn rows<'a>(
    table: &Table,
    state: &'a TableState,
    asked: &v1::TableEntry,
    after: Option<&Arc<Key>>,
) -> Result<Rows<'a>, Error> {
    let after = after.cloned().map(Bound::Excluded);
    if asked.r#match.is_empty() {
        let from = after.unwrap_or(Bound::Unbounded);
        return Ok(Box::new(state.rows.range((from, Bound::Unbounded))));
    }
    let matches = matches::parse_fields(&table.fields, &table.name, &asked.r#match)?;
    let priority = asked.priority;
    // Entries with the same match are adjacent, ordered by priority.
    let (lowest, highest) = if priority == 0 { (i32::MIN, i32::MAX) } else { (priority, priority) };
    let from = Key { matches: matches.clone(), priority: lowest };
    let to = Key { matches, priority: highest };
    let from = after.unwrap_or_else(|| Bound::Included(Arc::new(from)));
    Ok(Box::new(state.rows.range((from, Bound::Included(Arc::new(to))))))
}
