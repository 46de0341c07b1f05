//! Reads of table entries, and of their direct counters and meters.

use std::ops::Bound;
use std::sync::Arc;

use super::{AT_ONCE, ENTRY, Position, Reader, Stop, check_count};
use crate::device::{Count, Device, Key, Target};
use crate::entries::cookie;
use crate::error::{EntryError, Error, RequestError, named};
use crate::found::Found;
use crate::pipeline::Table;
use crate::store::{Row, TableState};
use crate::v1::{self, table_action};
use crate::{matches, read_memory, targets};

impl<D: Device> Reader<'_, D> {
    pub(super) fn table_entries(&mut self, asked: &v1::TableEntry) -> Result<(), Stop> {
        if asked.meter_counter_data.is_some() {
            let what = "counters of meters' colors";
            return Err(Error::Request(RequestError::Unsupported(what)).into());
        }
        if asked.table_id == 0 && filters(asked) {
            return Err(Error::Entry(EntryError::AllTables).into());
        }
        let pipeline = self.pipeline;
        self.each(asked.table_id, "table", &pipeline.tables, |this, id| this.entries(id, asked))
    }

    /// Entries of a table, or its default entry.
    fn entries(&mut self, id: u32, asked: &v1::TableEntry) -> Result<(), Stop> {
        let (table, state) = targets::table(self.pipeline, self.store, id)?;
        if asked.time_since_last_hit.is_some() || asked.idle_timeout_ns != 0 {
            return Err(Error::Entry(EntryError::NoIdleTimeout(named(&table.name))).into());
        }
        let counts = asked.counter_data.is_some() && table.counter;
        let meter = asked.meter_config.is_some() && table.meter.is_some();
        if asked.is_default_action {
            if filters(asked) {
                return Err(Error::Entry(EntryError::DefaultHasKey).into());
            }
            let of = [Target::Default];
            let count = if counts { self.direct_counts(id, &of)?.pop() } else { None };
            self.reserve(1, read_memory::default_entry(&state.default))?;
            let row = Box::new(state.default.clone());
            self.found.push(Found::Default { table: id, row, count, meter });
            return Ok(());
        }
        let action = action_filter(asked)?;
        let wanted = |row: &Row| {
            action.is_none_or(|action| row.call.action == action)
                && (cookie(asked) == 0 || cookie(asked) == row.cookie)
                && (asked.metadata.is_empty() || asked.metadata == row.metadata)
        };
        loop {
            let rows = self.rows(id, (table, state), asked, wanted)?;
            let counts: Vec<Option<Count>> = if counts {
                let of: Vec<_> =
                    rows.iter().map(|(key, _)| Target::Entry(Arc::clone(key))).collect();
                self.direct_counts(id, &of)?.into_iter().map(Some).collect()
            } else {
                vec![None; rows.len()]
            };
            let found = rows.into_iter().zip(counts);
            self.found.extend(found.map(|((key, row), count)| Found::Row {
                table: id,
                key,
                row,
                count,
                meter,
            }));
            if self.has_all_rows()? {
                return Ok(());
            }
        }
    }

    /// Some entries of a table that match the request and the predicate, from the position. Sets the
    /// position to the last one examined, or to none at the end of the table.
    fn rows(
        &mut self,
        id: u32,
        (table, state): (&Table, &TableState),
        asked: &v1::TableEntry,
        wanted: impl Fn(&Row) -> bool,
    ) -> Result<Vec<Entry>, Error> {
        let after = self.position.row.take();
        let (mut found, mut last) = (Vec::new(), None::<&Arc<Key>>);
        for (number, (key, row)) in rows(table, state, asked, after.as_ref())?.enumerate() {
            if number == AT_ONCE {
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

    /// Returns true at the end of a table. Ends this part before that if its time is over.
    fn has_all_rows(&mut self) -> Result<bool, Stop> {
        match self.position.row {
            None => Ok(true),
            Some(_) if self.is_over() => Err(Stop::TimeIsOver),
            Some(_) => Ok(false),
        }
    }

    fn direct_counts(&mut self, table: u32, of: &[Target]) -> Result<Vec<Count>, Error> {
        let mut counts = self.device()?.direct_counters(table, of)?;
        counts.resize(of.len(), Count::default());
        Ok(counts)
    }

    /// Direct counters or meters: of all tables, of a table, or of one entry.
    pub(super) fn direct(
        &mut self,
        asked: Option<&v1::TableEntry>,
        what: Resource,
    ) -> Result<(), Stop> {
        let asked = asked.ok_or(Error::Request(RequestError::NotSet("the table entry")))?;
        if asked.table_id == 0 && filters(asked) {
            return Err(Error::Entry(EntryError::AllTables).into());
        }
        let pipeline = self.pipeline;
        self.each(asked.table_id, "table", &pipeline.tables, |this, id| {
            this.direct_of(id, asked, what)
        })
    }

    /// Direct counters or meters of a table.
    fn direct_of(&mut self, id: u32, asked: &v1::TableEntry, what: Resource) -> Result<(), Stop> {
        let (table, state) = targets::table(self.pipeline, self.store, id)?;
        let has = match what {
            Resource::Counter => table.counter,
            Resource::Meter => table.meter.is_some(),
        };
        if !has {
            let none = EntryError::NoDirect(named(&table.name), what.name());
            return match asked.table_id {
                0 => Ok(()),
                _ => Err(Error::Entry(none).into()),
            };
        }
        if asked.is_default_action {
            self.reserve(1, 0)?;
            return Ok(self.found_direct(id, state, vec![Target::Default], what)?);
        }
        let mut is_first = self.position.row.is_none();
        loop {
            let rows = self.rows(id, (table, state), asked, |_| true)?;
            if is_first && rows.is_empty() && !asked.r#match.is_empty() {
                return Err(Error::Entry(EntryError::NoEntry(named(&table.name))).into());
            }
            is_first = false;
            let of = rows.into_iter().map(|(key, _)| Target::Entry(key)).collect();
            self.found_direct(id, state, of, what)?;
            if self.has_all_rows()? {
                return Ok(());
            }
        }
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
}

#[derive(Clone, Copy)]
pub(super) enum Resource {
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
