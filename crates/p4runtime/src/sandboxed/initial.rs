//! Initial contents of a program's tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use p4_object::Object;

use super::layouts::{Layouts, TableAt};
use crate::device::{Direct, Entry, Initial};
use crate::pipeline::Pipeline;

/// Table that a map belongs to.
struct Of<'l> {
    id: u32,
    table: &'l TableAt,
    /// True for the map of the default action.
    is_default: bool,
}

/// Initial table contents. Among entries with the same key, the first one wins, as in maps. Entries
/// that P4Runtime cannot express are omitted.
pub(super) fn initial(pipeline: &Pipeline, layouts: &Layouts, object: &Object) -> Initial {
    let mut of_map: BTreeMap<u32, Vec<Of<'_>>> = BTreeMap::new();
    for (id, table) in &layouts.tables {
        for (map, is_default) in [(table.at.default_action, true), (table.at.entries, false)] {
            let Some(map) = map else { continue };
            of_map.entry(map).or_default().push(Of { id: *id, table, is_default });
        }
    }
    let mut entries = Vec::new();
    let mut defaults = BTreeMap::new();
    let mut there = BTreeSet::new();
    for entry in &object.entries {
        for Of { id, table, is_default } in of_map.get(&entry.map).into_iter().flatten() {
            let Some(call) = table.read_call(&entry.value) else { continue };
            if *is_default {
                defaults.insert(*id, call);
            } else if let Some(key) = table.read_key(&entry.key) {
                let key = Arc::new(key);
                if there.insert((*id, Arc::clone(&key))) {
                    let constant = pipeline.tables.get(id).is_some_and(|table| table.constant);
                    let direct = Direct::default();
                    entries.push((Entry { table: *id, key, call, direct }, constant));
                }
            }
        }
    }
    let map = |table: &TableAt| object.maps.get(table.at.entries? as usize);
    let room = layouts.tables.iter().filter_map(|(id, at)| Some((*id, map(at)?.max_entries)));
    Initial { entries, defaults: defaults.into_iter().collect(), room: room.collect() }
}
