//! A YAML text as a tree with the location of each value.

use super::Renamed;

/// A range of characters of the text. A tree may have millions of them, so the numbers are small:
/// files are far below 4 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Index of the first character.
    pub(crate) start: u32,
    /// Index after the last character.
    pub(crate) end: u32,
    /// Line of the first character, from 1.
    pub line: u32,
}

impl Span {
    pub(super) fn one(at: &saphyr_parser::Marker) -> Self {
        Self { start: at.index() as u32, end: at.index() as u32 + 1, line: at.line() as u32 }
    }
}

impl From<saphyr_parser::Span> for Span {
    fn from(span: saphyr_parser::Span) -> Self {
        Self { end: span.end.index() as u32, ..Self::one(&span.start) }
    }
}

/// A value and its location. A list or map in a map has the location of its key.
#[derive(Debug, Clone)]
pub struct Tree {
    pub(crate) span: Span,
    /// The value.
    pub value: Value,
    /// True if an invalid part was pruned: subsequent errors about missing parts are consequences
    /// of that.
    pub(crate) pruned: bool,
}

/// A YAML value.
#[derive(Debug, Clone)]
pub enum Value {
    /// A scalar.
    Scalar {
        /// The text, without quotes.
        text: String,
        /// True if it is not quoted.
        plain: bool,
    },
    /// A list.
    List(Vec<Tree>),
    /// A map in file order, without duplicates.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Location of the key.
    pub span: Span,
    /// The value.
    pub value: Tree,
}

/// A step from a value to a nested value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The value of this key.
    Key(String),
    /// The item of a list, or the entry of a map, at this index.
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.into())
    }
}

impl From<&String> for Step {
    fn from(key: &String) -> Self {
        Self::Key(key.clone())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl Tree {
    pub(super) fn step(&self, step: &Step) -> Option<(Span, &Tree)> {
        match (&self.value, step) {
            (Value::Map(entries), Step::Key(key)) => {
                let entry = entries.iter().find(|entry| entry.key == *key)?;
                Some((entry.span, &entry.value))
            }
            (Value::Map(entries), Step::Index(index)) => {
                entries.get(*index).map(|entry| (entry.span, &entry.value))
            }
            (Value::List(items), Step::Index(index)) => {
                items.get(*index).map(|item| (item.span, item))
            }
            _ => None,
        }
    }

    /// Replaces the earlier names of keys. The locations stay those of the file.
    pub(super) fn rename(&mut self, renamed: &[Renamed]) {
        let Value::Map(sections) = &mut self.value else { return };
        for Renamed { section, old, new } in renamed {
            let section = sections.iter_mut().filter(|entry| entry.key == *section);
            let entries = section.flat_map(|section| section.value.entries_mut());
            let keys = entries.flat_map(|entry| entry.value.entries_mut());
            keys.filter(|key| key.key == *old).for_each(|key| key.key = (*new).into());
        }
    }

    /// The entries of a map.
    fn entries_mut(&mut self) -> &mut [Entry] {
        match &mut self.value {
            Value::Map(entries) => entries,
            _ => &mut [],
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Locations of the key and the value at `path`, or of the longest existing part of the path.
    pub(crate) fn locate(&self, path: &[Step]) -> (Span, Span) {
        let (mut key, mut tree) = (self.span, self);
        for step in path {
            match tree.step(step) {
                Some(found) => (key, tree) = found,
                None => break,
            }
        }
        (key, tree.span)
    }

    /// True if there is a value at `path`.
    pub fn has(&self, path: &[Step]) -> bool {
        path.iter().try_fold(self, |tree, step| Some(tree.step(step)?.1)).is_some()
    }

    /// Removes the value at `path`, and marks its parent. Returns false if there is no such value.
    pub(crate) fn prune(&mut self, path: &[Step]) -> bool {
        let Some((last, parents)) = path.split_last() else { return false };
        let mut tree = self;
        for step in parents {
            let next = match (&mut tree.value, step) {
                (Value::Map(entries), Step::Key(key)) => {
                    entries.iter_mut().find(|e| e.key == *key).map(|e| &mut e.value)
                }
                (Value::List(items), Step::Index(index)) => items.get_mut(*index),
                _ => None,
            };
            let Some(next) = next else { return false };
            tree = next;
        }
        tree.pruned = true;
        match (&mut tree.value, last) {
            (Value::Map(entries), Step::Key(key)) => {
                let before = entries.len();
                entries.retain(|entry| entry.key != *key);
                entries.len() < before
            }
            (Value::List(items), Step::Index(index)) if *index < items.len() => {
                items.remove(*index);
                true
            }
            _ => false,
        }
    }

    /// True if the value at `path` lost a part.
    pub(crate) fn is_pruned(&self, path: &[Step]) -> bool {
        let found = path.iter().try_fold(self, |tree, step| Some(tree.step(step)?.1));
        found.is_some_and(|tree| tree.pruned)
    }

    /// Size in memory, in bytes, as far as a copy has to allocate it again.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.value {
                Value::Scalar { text, .. } => text.len(),
                Value::List(items) => items.iter().map(Self::bytes).sum(),
                Value::Map(entries) => entries.iter().map(Entry::bytes).sum(),
            }
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        // The value counts its own `Tree`.
        size_of::<Self>() - size_of::<Tree>() + self.key.len() + self.value.bytes()
    }
}
