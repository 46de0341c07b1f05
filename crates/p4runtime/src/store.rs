//! State written by clients: entries, default actions, meters, value sets, digests. State changed
//! by packets is kept by the device.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::device::{Call, Initial, Key, Match, Meter};
use crate::error::{Error, ValueError};
use crate::pipeline::Pipeline;
use crate::v1::digest_entry;

/// A table entry without its key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) call: Call,
    pub(crate) meter: Option<Meter>,
    pub(crate) metadata: Vec<u8>,
    pub(crate) cookie: u64,
    pub(crate) constant: bool,
}

/// The default entry of a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DefaultRow {
    /// `None` if the program's default action is unknown.
    pub(crate) call: Option<Call>,
    pub(crate) meter: Option<Meter>,
    pub(crate) metadata: Vec<u8>,
    pub(crate) cookie: u64,
    /// True if changed since the program was installed.
    pub(crate) changed: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct TableState {
    pub(crate) rows: BTreeMap<Arc<Key>, Arc<Row>>,
    /// Maximum number of rows. The program may delete entries of its own: its map does not limit them.
    pub(crate) room: u64,
    pub(crate) default: DefaultRow,
    /// Initial default action of the program.
    pub(crate) original: Option<Call>,
}

/// Meter cells: the last configuration of all cells, and later ones of single cells.
#[derive(Debug, Clone, Default)]
pub(crate) struct MeterState {
    pub(crate) all: Option<Meter>,
    pub(crate) single: BTreeMap<u64, Option<Meter>>,
}

impl MeterState {
    pub(crate) fn get(&self, at: u64) -> Option<Meter> {
        self.single.get(&at).copied().unwrap_or(self.all)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Store {
    pub(crate) tables: BTreeMap<u32, TableState>,
    pub(crate) meters: BTreeMap<u32, MeterState>,
    pub(crate) sets: BTreeMap<u32, Arc<Vec<Vec<Match>>>>,
    pub(crate) digests: BTreeMap<u32, digest_entry::Config>,
    /// Bytes of metadata of all entries.
    pub(crate) metadata_bytes: usize,
}

/// Effect of a change on the store. Applying one returns its inverse.
#[derive(Debug)]
pub(crate) enum Effect {
    Nothing,
    Row { table: u32, key: Arc<Key>, row: Option<Arc<Row>> },
    Default { table: u32, row: DefaultRow },
    Meter { id: u32, at: u64, meter: Option<Meter>, set: bool },
    Meters { id: u32, state: MeterState },
    Set { id: u32, members: Arc<Vec<Vec<Match>>> },
    Digest { id: u32, config: Option<digest_entry::Config> },
}

impl Store {
    /// Initial state of a program.
    pub(crate) fn new(pipeline: &Pipeline, initial: Initial) -> Result<Self, Error> {
        let mut store = Self::default();
        for (id, table) in &pipeline.tables {
            let original = table.initial_default.clone();
            let default = DefaultRow { call: original.clone(), ..DefaultRow::default() };
            let size = if table.size == 0 { u64::MAX } else { table.size };
            let room = initial.room.get(id).map_or(size, |room| size.min((*room).into()));
            let state = TableState { default, original, room, ..TableState::default() };
            store.tables.insert(*id, state);
        }
        let missing = |id| Error::Value(ValueError::UnknownId { kind: "table", id });
        for (id, call) in initial.defaults {
            let table = store.tables.get_mut(&id).ok_or_else(|| missing(id))?;
            table.default.call = Some(call.clone());
            table.original = Some(call);
        }
        for (entry, constant) in initial.entries {
            let table = store.tables.get_mut(&entry.table).ok_or_else(|| missing(entry.table))?;
            let row = Row {
                call: entry.call,
                meter: entry.direct.meter,
                metadata: Vec::new(),
                cookie: 0,
                constant,
            };
            table.rows.insert(entry.key, Arc::new(row));
        }
        Ok(store)
    }

    /// Applies an effect and returns its inverse. Ids have been validated.
    pub(crate) fn apply(&mut self, effect: Effect) -> Effect {
        match effect {
            Effect::Nothing => Effect::Nothing,
            Effect::Row { table, key, row } => {
                let rows = &mut self.tables.entry(table).or_default().rows;
                self.metadata_bytes += row.as_ref().map_or(0, |row| row.metadata.len());
                let old = match row {
                    Some(row) => rows.insert(key.clone(), row),
                    None => rows.remove(&key),
                };
                self.metadata_bytes -= old.as_ref().map_or(0, |row| row.metadata.len());
                Effect::Row { table, key, row: old }
            }
            Effect::Default { table, row } => {
                let default = &mut self.tables.entry(table).or_default().default;
                self.metadata_bytes += row.metadata.len();
                self.metadata_bytes -= default.metadata.len();
                Effect::Default { table, row: std::mem::replace(default, row) }
            }
            Effect::Meter { id, at, meter, set } => {
                let single = &mut self.meters.entry(id).or_default().single;
                let old = match set {
                    true => single.insert(at, meter),
                    false => single.remove(&at),
                };
                Effect::Meter { id, at, meter: old.flatten(), set: old.is_some() }
            }
            Effect::Meters { id, state } => {
                let meters = self.meters.entry(id).or_default();
                Effect::Meters { id, state: std::mem::replace(meters, state) }
            }
            Effect::Set { id, members } => {
                let old = self.sets.insert(id, members).unwrap_or_default();
                Effect::Set { id, members: old }
            }
            Effect::Digest { id, config } => {
                let old = match config {
                    Some(config) => self.digests.insert(id, config),
                    None => self.digests.remove(&id),
                };
                Effect::Digest { id, config: old }
            }
        }
    }
}
