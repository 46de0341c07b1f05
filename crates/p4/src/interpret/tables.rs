//! What the control plane has put into tables, and which entry a packet finds.

use num_bigint::BigInt;

use super::{Done, Error, Run, Stop};
use crate::cells::{Count, MeterCell};
use crate::ir::{
    ActionId, Elaborated, Entry as Given, Expression, Key, MatchKind, Program, Set, TableId, Type,
    Value, arithmetic,
};

/// What one part of a key is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// Anything.
    Any,
    /// This value.
    Exact(Value),
    /// Under this mask. A prefix is a mask whose ones are in front.
    Mask(BigInt, BigInt),
    /// From and to, both included.
    Range(BigInt, BigInt),
}

/// An entry of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What the key is to be, part by part.
    pub keys: Vec<Match>,
    /// Where several entries fit, the highest is taken.
    pub priority: u32,
    /// One of the table's actions, by its place, and its arguments.
    pub action: (usize, Vec<Value>),
}

/// What is counted and metered for an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Direct {
    pub(super) count: Count,
    pub(super) meter: MeterCell,
}

/// An entry, and what is kept for it.
#[derive(Debug, Clone)]
struct Row {
    entry: Entry,
    direct: Direct,
}

/// A table at its place.
#[derive(Debug, Clone)]
struct Filled {
    table: TableId,
    entries: Vec<Row>,
    default_action: (usize, Vec<Value>),
    default_direct: Direct,
}

/// All tables of a program, by their places in [`Elaborated::tables`].
#[derive(Debug, Clone, Default)]
pub struct Tables {
    all: Vec<Filled>,
}

impl Tables {
    /// The tables with the entries that the program gives.
    pub(super) fn new(program: &Program, made: &Elaborated) -> Self {
        let fill = |(id, _): &(TableId, String)| {
            let table = &program.tables[id.index()];
            Filled {
                table: *id,
                entries: table.entries.iter().map(given_entry).map(Row::new).collect(),
                default_action: table.default_action.clone(),
                default_direct: Direct::default(),
            }
        };
        Self { all: made.tables.iter().map(fill).collect() }
    }

    /// Adds an entry to the table at this place; one with the same key makes way for it.
    pub fn add(&mut self, at: usize, entry: Entry) {
        let entries = &mut self.all[at].entries;
        entries.retain(|one| !one.entry.is_like(&entry));
        entries.push(Row::new(entry));
    }

    /// What is kept for the entry with this key of the table at this place, or for what the table does
    /// by default. None if there is no such entry.
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

    /// The same of an entry by its place.
    pub(super) fn direct_at(&mut self, (at, entry): (usize, Option<usize>)) -> &mut Direct {
        let filled = &mut self.all[at];
        match entry {
            Some(entry) => &mut filled.entries[entry].direct,
            None => &mut filled.default_direct,
        }
    }

    /// Sets what the table at this place does where no entry is found.
    pub fn set_default(&mut self, at: usize, action: usize, arguments: Vec<Value>) {
        self.all[at].default_action = (action, arguments);
    }
}

impl Entry {
    /// Whether a table knows both by the same key.
    fn is_like(&self, other: &Self) -> bool {
        self.keys == other.keys && self.priority == other.priority
    }
}

impl Row {
    fn new(entry: Entry) -> Self {
        Self { entry, direct: Direct::default() }
    }
}

pub(crate) fn given_entry(given: &Given) -> Entry {
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

/// Whether a value is what it is to be.
fn fits(wanted: &Match, value: &Value) -> bool {
    match (wanted, value) {
        (Match::Any, _) => true,
        (Match::Exact(wanted), _) => arithmetic::equal(wanted, value),
        (Match::Mask(wanted, mask), Value::Integer(value)) => value & mask == wanted & mask,
        (Match::Range(from, to), Value::Integer(value)) => (from..=to).contains(&value),
        _ => false,
    }
}

/// How specific an entry is by its prefix: the bits of it.
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
    /// Applies a table: whether an entry was found, and the action that ran.
    pub(super) fn apply_table(&mut self, id: TableId) -> Done<(bool, ActionId)> {
        let program = self.program;
        let table = &program.tables[id.index()];
        let Some(&at) = self.machine.made.blocks[self.around].tables.get(&id) else {
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
        // Among equals the first is taken: the iterator keeps the last.
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
