//! YAML text -> a tree that knows where each of its values stands.
//!
//! Anchors, aliases and merge keys are resolved here, within limits, so that a small text cannot
//! become a huge tree.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle};

/// A range of characters of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Span {
    /// The first character's index.
    pub(super) start: usize,
    /// The index behind the last character.
    pub(super) end: usize,
}

impl From<saphyr_parser::Span> for Span {
    fn from(span: saphyr_parser::Span) -> Self {
        Self { start: span.start.index(), end: span.end.index() }
    }
}

/// A value and its place. A list or map below a key stands where its key stands.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub(super) span: Span,
    pub(super) value: Value,
    /// A faulty part was cut out: what now seems to be missing here is no fault of its own.
    pub(super) pruned: bool,
}

/// What a YAML value is.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// A scalar; `plain` if it stands without quotes.
    Scalar { text: String, plain: bool },
    /// A list.
    List(Vec<Tree>),
    /// A map in the text's order, without duplicates.
    Map(Vec<Entry>),
}

/// One key and its value.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) span: Span,
    pub(super) value: Tree,
}

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The value of this key.
    Key(String),
    /// The list's item with this index.
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

/// Something that keeps a text from being a tree.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) span: Span,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Fault {
    fn new(span: Span, message: impl Into<String>, help: &str) -> Self {
        Self { span, message: message.into(), help: Some(help.into()) }
    }
}

/// How deep values may nest: the grammar needs seven levels.
const MAX_DEPTH: usize = 32;
/// How many values aliases may add.
const MAX_ALIASED: usize = 100_000;

impl Tree {
    fn step(&self, step: &Step) -> Option<(Span, &Tree)> {
        match (&self.value, step) {
            (Value::Map(entries), Step::Key(key)) => {
                let entry = entries.iter().find(|entry| entry.key == *key)?;
                Some((entry.span, &entry.value))
            }
            (Value::List(items), Step::Index(index)) => {
                items.get(*index).map(|item| (item.span, item))
            }
            _ => None,
        }
    }

    /// Where the key and the value at `path` stand, or what of the path exists.
    pub(super) fn locate(&self, path: &[Step]) -> (Span, Span) {
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
    pub(super) fn has(&self, path: &[Step]) -> bool {
        path.iter().try_fold(self, |tree, step| Some(tree.step(step)?.1)).is_some()
    }

    /// Cuts out the value at `path`, and marks what held it. False if there is no such value.
    pub(super) fn prune(&mut self, path: &[Step]) -> bool {
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
    pub(super) fn is_pruned(&self, path: &[Step]) -> bool {
        let found = path.iter().try_fold(self, |tree, step| Some(tree.step(step)?.1));
        found.is_some_and(|tree| tree.pruned)
    }

    fn count(&self) -> usize {
        1 + match &self.value {
            Value::Scalar { .. } => 0,
            Value::List(items) => items.iter().map(Self::count).sum(),
            Value::Map(entries) => entries.iter().map(|entry| entry.value.count()).sum(),
        }
    }
}

/// A list or map whose end is still to come.
struct Open {
    anchor: usize,
    tree: Tree,
    /// In a map: the key whose value comes next.
    key: Option<(String, Span)>,
    keys: HashSet<String>,
}

#[derive(Default)]
struct Loader {
    open: Vec<Open>,
    anchors: HashMap<usize, Tree>,
    aliased: usize,
    root: Option<Tree>,
    faults: Vec<Fault>,
}

/// The tree of `text`, as far as it can be read, and everything that is wrong with it.
pub(super) fn load(text: &str) -> (Option<Tree>, Vec<Fault>) {
    let mut loader = Loader::default();
    let mut documents = 0;
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = match event {
            Ok((event, span)) => (event, Span::from(span)),
            Err(error) => {
                let at = error.marker().index();
                loader.faults.push(Fault::new(
                    Span { start: at, end: at + 1 },
                    format!("this is not YAML: {}", error.info()),
                    "check the indentation, the brackets and the quotes up to here",
                ));
                return (None, loader.faults);
            }
        };
        match event {
            Event::DocumentStart(_) if documents > 0 => {
                loader.faults.push(Fault::new(
                    span,
                    "a second document begins here",
                    "write one lab per file",
                ));
                break;
            }
            Event::DocumentStart(_) => documents += 1,
            Event::StreamEnd => break,
            event => {
                if let Err(fault) = loader.event(event, span) {
                    loader.faults.push(fault);
                    return (None, loader.faults);
                }
            }
        }
    }
    (loader.root, loader.faults)
}

impl Loader {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Fault> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                self.done(span, anchor, Value::Scalar { text: text.into_owned(), plain })?;
            }
            Event::SequenceStart(anchor, _) => self.begin(anchor, span, Value::List(vec![]))?,
            Event::MappingStart(anchor, _) => self.begin(anchor, span, Value::Map(vec![]))?,
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    let mut value = open.tree.value;
                    if let Value::Map(entries) = &mut value {
                        merge(entries)?;
                    }
                    self.done(open.tree.span, open.anchor, value)?;
                }
            }
            Event::Alias(id) => self.alias(id, span)?,
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, anchor: usize, span: Span, value: Value) -> Result<(), Fault> {
        if self.open.len() == MAX_DEPTH {
            return Err(Fault::new(span, "values are nested too deeply", "write it flatter"));
        }
        let tree = Tree { span, value, pruned: false };
        self.open.push(Open { anchor, tree, key: None, keys: HashSet::new() });
        Ok(())
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<(), Fault> {
        let Some(tree) = self.anchors.get(&id).cloned() else {
            let help = "use the alias behind the end of its anchor's value";
            return Err(Fault::new(span, "this alias stands inside its own anchor", help));
        };
        self.aliased += tree.count();
        if self.aliased > MAX_ALIASED {
            let message = format!("aliases add more than {MAX_ALIASED} values");
            return Err(Fault::new(span, message, "use fewer aliases"));
        }
        self.done(tree.span, 0, tree.value)
    }

    /// Puts a complete value where it belongs.
    fn done(&mut self, span: Span, anchor: usize, value: Value) -> Result<(), Fault> {
        let mut tree = Tree { span, value, pruned: false };
        if anchor > 0 {
            self.anchors.insert(anchor, tree.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(tree);
            return Ok(());
        };
        match (&mut open.tree.value, open.key.take()) {
            (Value::List(items), _) => items.push(tree),
            (Value::Map(_), None) => match tree.value {
                Value::Scalar { text, .. } => open.key = Some((text, tree.span)),
                _ => return Err(Fault::new(span, "a key must be a word", "write `key: value`")),
            },
            (Value::Map(entries), Some((key, span))) => {
                if !matches!(tree.value, Value::Scalar { .. }) {
                    tree.span = span;
                }
                if open.keys.insert(key.clone()) {
                    entries.push(Entry { key, span, value: tree });
                } else {
                    let message = format!("`{key}` is given twice");
                    self.faults.push(Fault::new(span, message, "rename or remove one of the two"));
                }
            }
            (Value::Scalar { .. }, _) => unreachable!("only lists and maps are open"),
        }
        Ok(())
    }
}

/// Resolves `<<: *anchor`: the keys of the map, or maps, that are not given beside it.
fn merge(entries: &mut Vec<Entry>) -> Result<(), Fault> {
    let Some(at) = entries.iter().position(|entry| entry.key == "<<") else { return Ok(()) };
    let Entry { span, value, .. } = entries.remove(at);
    let sources = match value.value {
        Value::List(items) => items,
        _ => vec![value],
    };
    let mut known: HashSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    for source in sources {
        let Value::Map(more) = source.value else {
            return Err(Fault::new(span, "`<<` takes a map", "write `<<: *anchor` of a map"));
        };
        entries.extend(more.into_iter().filter(|entry| known.insert(entry.key.clone())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        load(text).1.into_iter().map(|fault| fault.message).collect()
    }

    #[test]
    fn a_value_knows_its_place() {
        let text = "a: 1\nlinks:\n  - r1-r2: {rate: 5mbit}\n";
        let (tree, faults) = load(text);
        assert!(faults.is_empty());
        let path = ["links".into(), 0.into(), "r1-r2".into(), "rate".into()];
        let (key, value) = tree.unwrap().locate(&path);
        assert_eq!(&text[key.start..key.end], "rate");
        assert_eq!(&text[value.start..value.end], "5mbit");
    }

    #[test]
    fn merge_keys_give_defaults() {
        let (tree, faults) = load("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\n");
        assert!(faults.is_empty());
        let tree = tree.unwrap();
        let (_, used) = tree.step(&"use".into()).unwrap();
        let text = |key: &str| match &used.step(&key.into()).unwrap().1.value {
            Value::Scalar { text, .. } => text.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!((text("x"), text("y")), ("1".into(), "3".into()));
    }

    #[test]
    fn small_texts_stay_small_trees() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for n in 1..20 {
            let before = format!("*a{}, ", n - 1).repeat(9);
            bomb += &format!("a{n}: &a{n} [{}]\n", before.trim_end_matches(", "));
        }
        assert!(messages(&bomb)[0].contains("aliases add more than"));
        assert!(messages(&"[".repeat(100))[0].contains("nested too deeply"));
        assert!(!messages(&"[".repeat(100_000)).is_empty());
        assert!(messages("a: &a [*a]")[0].contains("inside its own anchor"));
    }

    #[test]
    fn duplicates_and_second_documents_are_faults() {
        assert_eq!(
            messages("a: 1\na: 2\nb: 1\nb: 1"),
            ["`a` is given twice", "`b` is given twice"]
        );
        assert_eq!(messages("a: 1\n---\nb: 1"), ["a second document begins here"]);
    }
}
