//! Reads ("Read RPC", "Wildcard Reads"). Results are small and share data with the store. They are
//! converted to messages later, off the device's thread.

use std::sync::Arc;

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

/// Executes a read request.
pub(crate) struct Reader<'a, D: Device> {
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) store: &'a Store,
    /// `None` until the program is committed.
    pub(crate) device: Option<&'a mut D>,
    pub(crate) found: Vec<Found>,
    pub(crate) looked: usize,
    pub(crate) memory: ReadMemory,
}

impl<D: Device> Reader<'_, D> {
    /// One result for each entity of a request. Fails as a whole if the request exceeds a limit.
    pub(crate) fn all(
        &mut self,
        asked: &[v1::Entity],
        is_gone: impl Fn() -> bool,
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let mut answers = Vec::new();
        for one in asked {
            if is_gone() {
                return Err(Error::Batch(BatchError::Disconnected));
            }
            let answer = self.look_at(1).and_then(|()| self.look(one));
            if let Err(
                error @ (Error::Batch(BatchError::TooMany(_))
                | Error::Batch(BatchError::TooManyToScan(_))
                | Error::Request(RequestError::AnswerMemory)),
            ) = answer
            {
                return Err(error);
            }
            self.memory.answer(&answer)?;
            answers.push(answer);
        }
        self.memory.message(self.found.len())?;
        Ok(answers)
    }

    /// Finds the results for one entity of a request.
    fn look(&mut self, asked: &v1::Entity) -> Result<(), Error> {
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
        self.looked += more;
        match self.looked > MOST_LOOKED {
            true => Err(Error::Batch(BatchError::TooManyToScan(MOST_LOOKED))),
            false => Ok(()),
        }
    }

    /// Ids that a request refers to: one, or all if the id is 0.
    fn ids<T>(
        &mut self,
        id: u32,
        kind: &'static str,
        all: &std::collections::BTreeMap<u32, T>,
    ) -> Result<Vec<u32>, Error> {
        match id {
            0 => {
                self.look_at(all.len())?;
                Ok(all.keys().copied().collect())
            }
            id if all.contains_key(&id) => Ok(vec![id]),
            id => Err(Error::Value(ValueError::UnknownId { kind, id })),
        }
    }

    // ---- tables ----

    fn table_entries(&mut self, asked: &v1::TableEntry) -> Result<(), Error> {
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
            let rows = self.rows(table, state, asked, |row| {
                action.is_none_or(|action| row.call.action == action)
                    && (cookie(asked) == 0 || cookie(asked) == row.cookie)
                    && (asked.metadata.is_empty() || asked.metadata == row.metadata)
            })?;
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
        }
        Ok(())
    }

    /// Entries of a table that match the request and the predicate.
    fn rows(
        &mut self,
        table: &Table,
        state: &TableState,
        asked: &v1::TableEntry,
        wanted: impl Fn(&Row) -> bool,
    ) -> Result<Vec<Entry>, Error> {
        let mut found = Vec::new();
        for (key, row) in rows(table, state, asked)? {
            self.look_at(1)?;
            if (asked.priority == 0 || asked.priority == key.priority) && wanted(row) {
                check_count(self.found.len() + found.len() + 1)?;
                self.memory.reserve(1, ENTRY)?;
                found.push((Arc::clone(key), Arc::clone(row)));
            }
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
    fn direct(&mut self, asked: Option<&v1::TableEntry>, what: Resource) -> Result<(), Error> {
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
            let of: Vec<Target> = if asked.is_default_action {
                vec![Target::Default]
            } else {
                let rows = self.rows(table, state, asked, |_| true)?;
                rows.into_iter().map(|(key, _)| Target::Entry(key)).collect()
            };
            if of.is_empty() && !asked.r#match.is_empty() {
                return Err(Error::Entry(EntryError::NoEntry(named(&table.name))));
            }
            // Entries have their reservation.
            self.reserve(usize::from(asked.is_default_action), 0)?;
            match what {
                Resource::Counter => {
                    let counts = self.direct_counts(id, &of)?;
                    let both = of.into_iter().zip(counts);
                    let found =
                        both.map(|(of, count)| Found::DirectCounter { table: id, of, count });
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
        }
        Ok(())
    }

    // ---- arrays ----

    fn counters(&mut self, asked: &v1::CounterEntry) -> Result<(), Error> {
        let pipeline = self.pipeline;
        for id in self.ids(asked.counter_id, "counter", &pipeline.counters)? {
            let array = cells::counter(pipeline, id)?;
            let at =
                self.cells(asked.counter_id, asked.index.as_ref(), &array.name, array.size, 0)?;
            let device = self.device.as_mut().ok_or(Error::Request(RequestError::NotCommitted))?;
            let counts = at.clone().zip(device.counters(id, at)?);
            self.found.extend(counts.map(|(at, count)| Found::Counter { id, at, count }));
        }
        Ok(())
    }

    fn meters(&mut self, asked: &v1::MeterEntry) -> Result<(), Error> {
        let (pipeline, store) = (self.pipeline, self.store);
        no_colors(asked.counter_data.as_ref())?;
        for id in self.ids(asked.meter_id, "meter", &pipeline.meters)? {
            let array = cells::meter_array(pipeline, id)?;
            let at =
                self.cells(asked.meter_id, asked.index.as_ref(), &array.name, array.size, 0)?;
            let state = store.meters.get(&id);
            let meter = |at| state.and_then(|state| state.get(at));
            self.found.extend(at.map(|at| Found::Meter { id, at, meter: meter(at) }));
        }
        Ok(())
    }

    fn registers(&mut self, asked: &v1::RegisterEntry) -> Result<(), Error> {
        let pipeline = self.pipeline;
        for id in self.ids(asked.register_id, "register", &pipeline.registers)? {
            // A wildcard read skips registers of unsupported types.
            if asked.register_id == 0 && !pipeline.registers[&id].of.is_known() {
                continue;
            }
            let register = cells::register(pipeline, id)?;
            let index = asked.index.as_ref();
            let bytes = size_of::<Data>() as u64 + read_memory::data(&register.of);
            let at = self.cells(asked.register_id, index, &register.name, register.size, bytes)?;
            let device = self.device.as_mut().ok_or(Error::Request(RequestError::NotCommitted))?;
            let values = at.clone().zip(device.registers(id, at)?);
            let found = values.map(|(at, data)| Found::Register { id, at, data: Box::new(data) });
            self.found.extend(found);
        }
        Ok(())
    }

    /// Cells that a request refers to: one, or all. Each result takes `bytes` in addition.
    fn cells(
        &mut self,
        id: u32,
        index: Option<&v1::Index>,
        name: &str,
        size: u64,
        bytes: u64,
    ) -> Result<std::ops::Range<u64>, Error> {
        if id == 0 && index.is_some() {
            return Err(Error::Request(RequestError::NotSet("the id that the index belongs to")));
        }
        let at = match cells::index(index, name, size)? {
            Some(at) => at..at + 1,
            None => 0..size,
        };
        self.reserve((at.end - at.start) as usize, bytes)?;
        Ok(at)
    }

    // ---- other entities ----

    fn value_sets(&mut self, asked: &v1::ValueSetEntry) -> Result<(), Error> {
        for id in self.ids(asked.value_set_id, "value set", &self.pipeline.value_sets)? {
            let members = self.store.sets.get(&id).cloned().unwrap_or_default();
            self.reserve(1, read_memory::members(&members))?;
            self.found.push(Found::ValueSet { id, members });
        }
        Ok(())
    }

    fn digests(&mut self, asked: &v1::DigestEntry) -> Result<(), Error> {
        for id in self.ids(asked.digest_id, "digest", &self.pipeline.digests)? {
            if let Some(config) = self.store.digests.get(&id) {
                self.reserve(1, 0)?;
                self.found.push(Found::Digest { id, config: *config });
            }
        }
        Ok(())
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

/// Candidate entries of a table, by the requested match and priority.
fn rows<'a>(
    table: &Table,
    state: &'a TableState,
    asked: &v1::TableEntry,
) -> Result<Rows<'a>, Error> {
    if asked.r#match.is_empty() {
        return Ok(Box::new(state.rows.iter()));
    }
    let matches = matches::all(&table.fields, &table.name, &asked.r#match)?;
    let priority = asked.priority;
    // Entries with the same match are adjacent, ordered by priority.
    let (lowest, highest) = if priority == 0 { (i32::MIN, i32::MAX) } else { (priority, priority) };
    let from = Key { matches: matches.clone(), priority: lowest };
    let to = Key { matches, priority: highest };
    Ok(Box::new(state.rows.range(Arc::new(from)..=Arc::new(to))))
}
