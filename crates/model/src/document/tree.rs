//! A YAML text as a tree that knows where each of its values stands.

/// A range of characters of the text. A tree may have millions: the numbers are as small as a file
/// allows, which is far below 4 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    /// The first character's index.
    pub(crate) start: u32,
    /// The index behind the last character.
    pub(crate) end: u32,
    /// The first character's line, from 1.
    pub(crate) line: u32,
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

/// A value and its place. A list or map below a key stands where its key stands.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) span: Span,
    pub(crate) value: Value,
    /// A faulty part was cut out: what now seems to be missing here is no fault of its own.
    pub(crate) pruned: bool,
}

/// What a YAML value is.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// A scalar; `plain` if it stands without quotes.
    Scalar { text: String, plain: bool },
    /// A list.
    List(Vec<Tree>),
    /// A map in the text's order, without duplicates.
    Map(Vec<Entry>),
}

/// One key and its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) span: Span,
    pub(crate) value: Tree,
}

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The value of this key.
    Key(String),
    /// The list's item, or the map's entry, with this index.
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

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Where the key and the value at `path` stand, or what of the path exists.
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

    /// Whether there is a value at `path`.
    pub(crate) fn has(&self, path: &[Step]) -> bool {
        path.iter().try_fold(self, |tree, step| Some(tree.step(step)?.1)).is_some()
    }

    /// Cuts out the value at `path`, and marks what held it. False if there is no such value.
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

    /// Whether the value at `path` lost a part.
    pub(crate) fn is_pruned(&self, path: &[Step]) -> bool {
        let found = path.iter().try_fold(self, |tree, step| Some(tree.step(step)?.1));
        found.is_some_and(|tree| tree.pruned)
    }

    pub(super) fn count(&self) -> usize {
        1 + match &self.value {
            Value::Scalar { .. } => 0,
            Value::List(items) => items.iter().map(Self::count).sum(),
            Value::Map(entries) => entries.iter().map(|entry| entry.value.count()).sum(),
        }
    }
}
