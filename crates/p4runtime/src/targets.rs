//! Tables and entries that requests name.

use std::sync::Arc;

use crate::device::{Key, Target};
use crate::error::{EntryError, Error, ValueError};
use crate::matches;
use crate::pipeline::{Pipeline, Table};
use crate::store::{Store, TableState};
use crate::v1;

/// Looks up a table and its state.
pub(crate) fn table<'a>(
    pipeline: &'a Pipeline,
    store: &'a Store,
    id: u32,
) -> Result<(&'a Table, &'a TableState), Error> {
    let both = (pipeline.tables.get(&id), store.tables.get(&id));
    match both {
        (Some(table), Some(state)) => Ok((table, state)),
        _ => Err(Error::Value(ValueError::UnknownId { kind: "table", id })),
    }
}

/// Target of a direct counter or meter entry.
pub(crate) fn target(table: &Table, entry: &v1::TableEntry) -> Result<Target, Error> {
    if entry.is_default_action {
        if !entry.r#match.is_empty() || entry.priority != 0 {
            return Err(Error::Entry(EntryError::DefaultHasKey));
        }
        return Ok(Target::Default);
    }
    let key: Key = matches::key(table, &entry.r#match, entry.priority)?;
    Ok(Target::Entry(Arc::new(key)))
}
