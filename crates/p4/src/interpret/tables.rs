//! Table entries, and the lookup of a packet's entry.

use num_bigint::BigInt;
use p4_object::cells::{Count, MeterCell};

use super::{Done, Error, Run, Stop};
use crate::ir::{
    ActionId, Elaborated, Entry as Given, Expression, Key, MatchKind, Program, Set, TableId, Type,
    Value, arithmetic,
};

/// Match for one key field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// Any value.
    Any,
    /// This value.
    Exact(Value),
    /// A value under a mask. A prefix is a mask with leading ones.
    Mask(BigInt, BigInt),
    /// A lower and an upper bound, both inclusive.
    Range(BigInt, BigInt),
}

/// A table entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// One match for each key field.
    pub keys: Vec<Match>,
    /// Priority. If several entries match, the one with the highest value wins.
    pub priority: u32,
    /// An index into the table's actions, and the arguments.
    pub action: (usize, Vec<Value>),
}

/// Direct counter and meter of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Direct {
    pub(super) count: Count,
    pub(super) meter: MeterCell,
}

/// An entry, with its direct counter and meter.
#[derive(Debug, Clone)]
struct Row {
    entry: Entry,
    direct: Direct,
}

/// An instance of a table.
#[derive(Debug, Clone)]
struct Filled {
    table: TableId,
    entries: Vec<Row>,
    default_action: (usize, Vec<Value>),
    default_direct: Direct,
}

/// All tables of a program, by their indices in [`Elaborated::tables`].
#[derive(Debug, Clone, Default)]
pub struct Tables {
    all: Vec<Filled>,
}

impl Tables {
    /// Creates the tables with the entries from the program.
    pub(super) fn new(program: &Program, elaborated: &Elaborated) -> Self {
        let fill = |(id, _): &(TableId, String)| {
            let table = &program.tables[id.index()];
            Filled {
                table: *id,
                entries: table.entries.iter().map(given_entry).map(Row::new).collect(),
                default_action: table.default_action.clone(),
                default_direct: Direct::default(),
            }
        };
        Self { all: elaborated.tables.iter().map(fill).collect() }
    }

    /// Adds an entry to the table at this index. It replaces an entry with the same key.
    pub fn add(&mut self, at: usize, entry: Entry) {
        let entries = &mut self.all[at].entries;
        entries.retain(|one| !one.entry.is_like(&entry));
        entries.push(Row::new(entry));
    }

    /// Returns the direct counter and meter of the entry with this key in the table at this index,
    /// or those of the default action. None if the entry does not exist.
    pub(super) fn direct(&mut self, at: usize, of: Option<&Entry>) -> Option<&mut Direct> {
        let filled = self.all.get_mut(at)?;
        match of {
            None => Some(&mut filled.default_direct),
            Some(entry) => {
                let found = filled.entries.iter_mut().find(|one| one.entry.is_like(entry));
                found.map(|one| &mut one.direct)
            }
        }
    }

    /// Returns the direct counter and meter of an entry, given by its index.
    pub(super) fn direct_at(&mut self, (at, entry): (usize, Option<usize>)) -> &mut Direct {
        let filled = &mut self.all[at];
        match entry {
            Some(entry) => &mut filled.entries[entry].direct,
            None => &mut filled.default_direct,
        }
    }

    /// Sets the default action of the table at this index.
    pub fn set_default(&mut self, at: usize, action: usize, arguments: Vec<Value>) {
        self.all[at].default_action = (action, arguments);
    }
}

impl Entry {
    /// Returns true if both entries have the same key and priority.
    fn is_like(&self, other: &Self) -> bool {
        self.keys == other.keys && self.priority == other.priority
    }
}

impl Row {
    fn new(entry: Entry) -> Self {
        Self { entry, direct: Direct::default() }
    }
}

/// Converts an entry of the program's `entries` property.
pub fn given_entry(given: &Given) -> Entry {
    let known = |value: &Expression| value.constant().cloned().unwrap_or(Value::Bool(false));
    let number = |value: &Expression| match known(value) {
        Value::Integer(value) => value,
        _ => BigInt::ZERO,
    };
    let key = |set: &Set| match set {
        Set::Any | Set::Of(_) => Match::Any,
        Set::Value(value) => Match::Exact(known(value)),
        Set::Mask(value, mask) => Match::Mask(number(value), number(mask)),
        Set::Range(from, to) => Match::Range(number(from), number(to)),
    };
    Entry {
        keys: given.keys.iter().map(key).collect(),
        priority: given.priority,
        action: given.action.clone(),
    }
}

/// Returns true if a value matches.
fn fits(wanted: &Match, value: &Value) -> bool {
    match (wanted, value) {
        (Match::Any, _) => true,
        (Match::Exact(wanted), _) => arithmetic::equal(wanted, value),
        (Match::Mask(wanted, mask), Value::Integer(value)) => value & mask == wanted & mask,
        (Match::Range(from, to), Value::Integer(value)) => (from..=to).contains(&value),
        _ => false,
    }
}

/// Returns the prefix length of an entry, which ranks the entries of an LPM table.
fn prefix(entry: &Entry, keys: &[Key]) -> u64 {
    let bits = |(key, of): (&Match, &Key)| match (key, &of.expression.of) {
        (Match::Mask(_, mask), _) => mask.magnitude().count_ones(),
        (Match::Exact(_), Type::Bits { width, .. }) => u64::from(*width),
        (Match::Exact(_), _) => u64::MAX,
        _ => 0,
    };
    let parts = entry.keys.iter().zip(keys);
    parts.filter(|(_, key)| key.matched == MatchKind::Lpm).map(bits).max().unwrap_or(0)
}

impl Run<'_, '_> {
    /// Applies a table. Returns true if an entry matched, and the action that ran.
    pub(super) fn apply_table(&mut self, id: TableId) -> Done<(bool, ActionId)> {
        let program = self.program;
        let table = &program.tables[id.index()];
        let Some(&at) = self.machine.elaborated.blocks[self.around].tables.get(&id) else {
            return Err(Stop::Failed(Error::Internal));
        };
        let mut values = Vec::with_capacity(table.keys.len());
        for key in &table.keys {
            values.push(self.value(&key.expression)?);
        }
        let filled = &self.machine.tables.all[at];
        debug_assert_eq!(filled.table, id);
        let all = |(_, row): &(usize, &Row)| {
            let keys = row.entry.keys.iter().zip(&values);
            !table.keys.is_empty() && keys.into_iter().all(|(wanted, value)| fits(wanted, value))
        };
        let ordered = table.keys.iter().any(|key| {
            matches!(key.matched, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional)
        });
        let rank = |(_, row): &(usize, &Row)| {
            if ordered { u64::from(row.entry.priority) } else { prefix(&row.entry, &table.keys) }
        };
        // The first of equal entries wins; `max_by_key` returns the last maximum.
        let rows = filled.entries.iter().enumerate();
        let found = rows.rev().filter(all).max_by_key(rank);
        let hit = found.is_some();
        let (action, arguments) =
            found.map_or(&filled.default_action, |(_, row)| &row.entry.action).clone();
        let call = &table.actions[action].call;
        let outside = self.entry.replace((at, found.map(|(entry, _)| entry)));
        self.run_action(call.action, &call.arguments, &arguments)?;
        self.entry = outside;
        Ok((hit, call.action))
    }
}
