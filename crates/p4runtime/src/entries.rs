//! Validates updates of table entries ("TableEntry").

use std::collections::BTreeMap;
use std::sync::Arc;

use p4info::v1::meter_spec;

use crate::cells;
use crate::device::{Call, Change, Direct, Entry, Key};
use crate::error::{ActionError, EntryError, Error, RequestError, ValueError, named};
use crate::matches;
use crate::pipeline::{Pipeline, Scope, Table};
use crate::plan::{Place, Plan};
use crate::store::{DefaultRow, Effect, Row, Store, TableState};
use crate::targets;
use crate::v1::{self, table_action, update};
use crate::values;

/// Maximum size of an entry's metadata in bytes.
const MAX_METADATA: usize = 4096;

/// Maximum size of the metadata of all entries in bytes.
const MAX_TOTAL_METADATA: usize = 64 << 20;

pub(crate) fn plan(
    pipeline: &Pipeline,
    store: &Store,
    kind: update::Type,
    entry: &v1::TableEntry,
) -> Result<Plan, Error> {
    let id = entry.table_id;
    let (table, state) = targets::table(pipeline, store, id)?;
    if entry.is_const {
        return Err(Error::Entry(EntryError::ConstIsRead));
    }
    if entry.is_default_action {
        metadata(store, table, &state.default.metadata, &entry.metadata)?;
        return default(pipeline, (table, state), kind, entry);
    }
    if table.fields.is_empty() {
        return Err(Error::Entry(EntryError::NoKey(named(&table.name))));
    }
    let key = Arc::new(matches::key(table, &entry.r#match, entry.priority)?);
    if kind == update::Type::Delete {
        return delete((table, state), id, key);
    }
    let place = Place::Row(id, Arc::clone(&key));
    let old = state.rows.get(&key).map_or(&[][..], |row| &row.metadata);
    metadata(store, table, old, &entry.metadata)?;
    let direct = direct(table, entry)?;
    let call = called(pipeline, table, entry, Scope::Entries)?;
    let (call, is_constant) = match kind {
        update::Type::Insert => (inserted((table, state), &key, call)?, false),
        update::Type::Modify => modified((table, state), &key, call)?,
        _ => return Err(Error::Request(RequestError::Unspecified("update type"))),
    };
    let row = Arc::new(Row {
        call: call.clone(),
        meter: direct.meter,
        metadata: entry.metadata.clone(),
        cookie: cookie(entry),
        constant: is_constant,
    });
    let effect = Effect::Row { table: id, key: Arc::clone(&key), row: Some(row) };
    let entry = Entry { table: id, key, call, direct };
    let change = match kind {
        update::Type::Insert => Change::Insert(entry),
        _ => Change::Modify(entry),
    };
    Ok(Plan { change: Some(change), effect, place })
}

/// Checks the metadata of an entry, which is opaque to the server ("TableEntry").
fn metadata(store: &Store, table: &Table, old: &[u8], new: &[u8]) -> Result<(), Error> {
    if new.len() > MAX_METADATA {
        let (table, bytes) = (named(&table.name), new.len());
        return Err(Error::Entry(EntryError::Metadata { table, bytes, most: MAX_METADATA }));
    }
    if new.len() > old.len() && store.metadata_bytes - old.len() + new.len() > MAX_TOTAL_METADATA {
        return Err(Error::Entry(EntryError::AllMetadata { bytes: MAX_TOTAL_METADATA }));
    }
    Ok(())
}

fn delete((table, state): (&Table, &TableState), id: u32, key: Arc<Key>) -> Result<Plan, Error> {
    let name = || named(&table.name);
    if table.constant {
        return Err(Error::Entry(EntryError::ConstantTable(name())));
    }
    if state.rows.get(&key).ok_or_else(|| Error::Entry(EntryError::NoEntry(name())))?.constant {
        return Err(Error::Entry(EntryError::ConstantEntry(name())));
    }
    let place = Place::Row(id, Arc::clone(&key));
    let effect = Effect::Row { table: id, key: Arc::clone(&key), row: None };
    Ok(Plan { change: Some(Change::Delete { table: id, key }), effect, place })
}

/// Action of a new entry.
fn inserted(
    (table, state): (&Table, &TableState),
    key: &Key,
    call: Option<Call>,
) -> Result<Call, Error> {
    let name = || named(&table.name);
    if table.constant {
        return Err(Error::Entry(EntryError::ConstantTable(name())));
    }
    if state.rows.contains_key(key) {
        return Err(Error::Entry(EntryError::Exists(name())));
    }
    if state.rows.len() as u64 >= state.room {
        return Err(Error::Entry(EntryError::Full { table: name(), size: state.room }));
    }
    call.ok_or(Error::Request(RequestError::NotSet("the entry's action")))
}

/// New action of an existing entry, and true for a `const` entry. The direct resources of such an
/// entry can change.
fn modified(
    (table, state): (&Table, &TableState),
    key: &Key,
    call: Option<Call>,
) -> Result<(Call, bool), Error> {
    let old =
        state.rows.get(key).ok_or_else(|| Error::Entry(EntryError::NoEntry(named(&table.name))))?;
    let is_constant = table.constant || old.constant;
    if is_constant && call.is_some() {
        return Err(Error::Entry(EntryError::ConstantEntry(named(&table.name))));
    }
    Ok((call.unwrap_or_else(|| old.call.clone()), is_constant))
}

/// Plans a change of the default entry, which always exists.
fn default(
    pipeline: &Pipeline,
    (table, state): (&Table, &TableState),
    kind: update::Type,
    entry: &v1::TableEntry,
) -> Result<Plan, Error> {
    let id = entry.table_id;
    if !entry.r#match.is_empty() || entry.priority != 0 || entry.idle_timeout_ns != 0 {
        return Err(Error::Entry(EntryError::DefaultHasKey));
    }
    if kind != update::Type::Modify {
        return Err(Error::Entry(EntryError::OnlyModified("default actions")));
    }
    if table.constant_default.is_some() {
        return Err(Error::Entry(EntryError::ConstantDefault(named(&table.name))));
    }
    let direct = direct(table, entry)?;
    let call = called(pipeline, table, entry, Scope::Default)?;
    let row = match call.clone() {
        Some(call) => DefaultRow {
            call: Some(call),
            meter: direct.meter,
            metadata: entry.metadata.clone(),
            cookie: cookie(entry),
            changed: true,
        },
        None => DefaultRow { call: state.original.clone(), ..DefaultRow::default() },
    };
    let effect = Effect::Default { table: id, row };
    let change = Change::Default { table: id, call, direct };
    Ok(Plan { change: Some(change), effect, place: Place::Default(id) })
}

/// The deprecated cookie field, opaque to the server.
#[expect(deprecated, reason = "clients still use it")]
pub(crate) fn cookie(entry: &v1::TableEntry) -> u64 {
    entry.controller_metadata
}

/// Direct resources of an entry, checked against the table.
fn direct(table: &Table, entry: &v1::TableEntry) -> Result<Direct, Error> {
    if entry.idle_timeout_ns != 0 || entry.time_since_last_hit.is_some() {
        return Err(Error::Entry(EntryError::NoIdleTimeout(named(&table.name))));
    }
    if entry.meter_counter_data.is_some() {
        return Err(Error::Request(RequestError::Unsupported("counters of meters' colors")));
    }
    let none = |what| Err(Error::Entry(EntryError::NoDirect(named(&table.name), what)));
    if entry.counter_data.is_some() && !table.counter {
        return none("counter");
    }
    let kind = match table.meter {
        None if entry.meter_config.is_some() => return none("meter"),
        kind => kind.unwrap_or(meter_spec::Type::TwoRateThreeColor),
    };
    let count = entry.counter_data.as_ref().map(|data| cells::count(data, &table.name));
    Ok(Direct {
        count: count.transpose()?,
        meter: cells::meter(entry.meter_config.as_ref(), kind, &table.name)?,
    })
}

/// Action of an entry, if it is set.
fn called(
    pipeline: &Pipeline,
    table: &Table,
    entry: &v1::TableEntry,
    used_in: Scope,
) -> Result<Option<Call>, Error> {
    let Some(action) = &entry.action else { return Ok(None) };
    let message = match &action.r#type {
        Some(table_action::Type::Action(action)) => action,
        None => return Err(Error::Request(RequestError::NotSet("the entry's action"))),
        // Tables here have no action profile or selector.
        Some(_) => return Err(Error::Request(RequestError::Unsupported("action profiles"))),
    };
    let id = message.action_id;
    let known = pipeline
        .actions
        .get(&id)
        .ok_or(Error::Value(ValueError::UnknownId { kind: "action", id }))?;
    let scope = table.actions.get(&id);
    let other = || {
        Error::Action(ActionError::OtherAction {
            table: named(&table.name),
            action: named(&known.name),
        })
    };
    let scope = *scope.ok_or_else(other)?;
    if scope != Scope::Anywhere && scope != used_in {
        let only = if scope == Scope::Default { "the default action" } else { "entries" };
        let (table, action) = (named(&table.name), named(&known.name));
        return Err(Error::Action(ActionError::Scope { table, action, only }));
    }
    let mut given = BTreeMap::new();
    for one in &message.params {
        let param = known.params.iter().find(|param| param.id == one.param_id);
        let unknown = || {
            Error::Action(ActionError::UnknownParam {
                action: named(&known.name),
                param: one.param_id,
            })
        };
        let param = param.ok_or_else(unknown)?;
        let value = values::unsigned(&one.value, param.width);
        let value = value.ok_or_else(|| {
            Error::Value(ValueError::Width { of: named(&param.name), width: param.width })
        })?;
        if given.insert(param.id, value).is_some() {
            return Err(Error::Action(ActionError::DuplicateParam(named(&param.name))));
        }
    }
    let argument = |param: &crate::pipeline::Param| {
        given
            .remove(&param.id)
            .ok_or_else(|| Error::Action(ActionError::MissingParam(named(&param.name))))
    };
    let arguments = known.params.iter().map(argument).collect::<Result<_, _>>()?;
    Ok(Some(Call { action: id, arguments }))
}
