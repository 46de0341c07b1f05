//! Layout of state that outlives a packet: the maps of a program, and the encoding of their keys
//! and values. The conventions are those of p4c's uBPF back end as far as it has any, so that a
//! control plane for one can fill the tables of the other.
//!
//! A number of up to 64 bits occupies the next larger of 1, 2, 4 or 8 bytes, little-endian and
//! naturally aligned. A wider one is stored as its bytes in network byte order. The value of a
//! table is
//!
//! ```text
//! u32 action;              // its index in the table's list
//! union { struct { … } }   // the arguments of that action
//! u64 packets, bytes;      // if the table has a direct counter
//! u64 meter[8];            // if it has a direct meter: `cells::MeterCell`
//! ```
//!
//! Counters and meters are arrays of such cells.
//!
//! The encoding of a table's key depends on its match kinds:
//! - all exact (hash): the parts in descending order of width, equal widths in reverse order;
//! - one LPM (trie): the prefix length as `u32`, then all parts in network byte order and whole
//!   bytes, the LPM part last;
//! - otherwise (ternary): 64-bit words, in the order of the program; a wide part is several words,
//!   least significant first.

mod cells;
mod decode;
mod entries;
mod shape;

use std::collections::HashSet;

use p4::ir::{Elaborated, MatchKind, PlacedObject, Program, TableId, Type, ValueSetId};
use p4::model::Object;
use p4_object::cells::{Count, MeterCell};
use p4_object::{MAX_DIGEST, MAX_DIGESTS, MAX_KEY, Map, MapKind};
use p4_syntax::source::Span;

use crate::flat::NotCompiled;
use crate::flat::shape::limbs;

pub use decode::{put_numbers, read_numbers};
pub use entries::words;
pub use shape::NotLaid;

/// A number in a key or a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf {
    /// First slot of the number in the flat form.
    pub slot: u32,
    /// Width in bits.
    pub width: u32,
    /// Byte offset.
    pub offset: u32,
}

impl Leaf {
    /// Returns a number of this width without an offset.
    pub fn new(width: u32) -> Self {
        Self { slot: 0, width, offset: 0 }
    }
}

/// Encoding of a table's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// C layout: natural alignment, little-endian.
    Plain,
    /// Network byte order, in whole bytes.
    Wire,
    /// 64-bit words.
    Words,
}

/// Part of a table's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPart {
    /// Match kind.
    pub matched: MatchKind,
    /// Position in the key.
    pub leaf: Leaf,
}

/// Maps of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableMaps {
    /// Map of the entries; None if the table has no key.
    pub entries: Option<u32>,
    /// Map of the default action; None if it is constant.
    pub default_action: Option<u32>,
    /// Encoding of keys.
    pub encoding: Encoding,
    /// Parts of the key, in the order of the program.
    pub keys: Vec<KeyPart>,
    /// Size of a key in bytes.
    pub key_size: u32,
    /// Arguments of each action; each argument consists of numbers.
    pub actions: Vec<Vec<Vec<Leaf>>>,
    /// Size of a value in bytes.
    pub value_size: u32,
    /// Offset of the counter in a value ([`p4_object::cells::Count`]); None without a direct counter.
    pub counter: Option<u32>,
    /// Offset of the meter in a value ([`p4_object::cells::MeterCell`]); None without a direct meter.
    pub meter: Option<u32>,
}

/// Direct resources of a table: state that is kept for each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Direct {
    /// Presence of a counter.
    pub counter: bool,
    /// Presence of a meter.
    pub meter: bool,
}

/// An extern object that is stored in an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayMap {
    /// Index of the map.
    pub map: u32,
    /// Layout of an element.
    pub leaves: Vec<Leaf>,
}

/// Message of a digest, as passed to the helper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestData {
    /// Id: the index among all digests.
    pub id: u32,
    /// Layout of a message.
    pub leaves: Vec<Leaf>,
    /// Size of a message in bytes.
    pub size: u32,
}

/// Maps of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maps {
    /// All maps.
    pub maps: Vec<Map>,
    /// Maps of each table, by index.
    pub tables: Vec<TableMaps>,
    /// Map of each value set, by index. It is ternary, and its values are unused.
    pub value_sets: Vec<u32>,
    /// Array of each object, by index.
    pub objects: Vec<Option<ArrayMap>>,
    /// Message of each object that is a digest, by index.
    pub digests: Vec<Option<DigestData>>,
    /// Scratch map, in which headers are buffered while they move; it has one value and is the last
    /// map.
    pub scratch: Option<u32>,
}

/// Returns the name of the map for a control-plane name, as in p4c.
pub fn map_name(name: &str) -> String {
    name.replace('.', "_")
}

/// Returns the name of the map of a table's default action.
pub fn default_action_of(table: &str) -> String {
    map_name(table) + "_defaultAction"
}

/// Returns the size and the alignment of a number, in bytes.
pub(crate) fn storage(width: u32) -> (u32, u32) {
    match width {
        0..=8 => (1, 1),
        9..=16 => (2, 2),
        17..=32 => (4, 4),
        33..=64 => (8, 8),
        _ => (width.div_ceil(8), 1),
    }
}

/// Lays out numbers as in C, from `start` on. Returns the end offset and the largest alignment.
fn lay(leaves: &mut [Leaf], start: u32) -> (u32, u32) {
    let (mut at, mut most) = (start, 1);
    for leaf in leaves {
        let (size, align) = storage(leaf.width);
        leaf.offset = at.next_multiple_of(align);
        at = leaf.offset + size;
        most = most.max(align);
    }
    (at, most)
}

/// Lays out the numbers of an array element. Returns its size in bytes.
pub fn lay_element(leaves: &mut [Leaf]) -> u32 {
    let (size, most) = lay(leaves, 0);
    size.next_multiple_of(most).max(1)
}

/// Returns the number of 64-bit words of a number of this width in a ternary key.
pub fn words_of(width: u32) -> u32 {
    width.div_ceil(64).max(1)
}

impl Maps {
    /// Lays out the maps of a program.
    ///
    /// # Errors
    ///
    /// The first construct that does not fit into a map.
    pub fn new(program: &Program, elaborated: &Elaborated) -> Result<Self, NotCompiled> {
        let mut all = Self::default();
        for (id, name) in &elaborated.tables {
            all.add_table(program, *id, name)?;
        }
        for (id, name) in &elaborated.value_sets {
            all.add_value_set(program, *id, name)?;
        }
        for object in &elaborated.objects {
            let array = all.add_object(program, object)?;
            all.objects.push(array);
            let digest = all.digest(program, object)?;
            all.digests.push(digest);
        }
        let deparser = elaborated.main.last().map(|at| elaborated.blocks[*at].block);
        if let Some(id) = deparser.and_then(|id| program.blocks[id.index()].parameters.get(1)) {
            let of = &program.variables[id.index()].of;
            let bytes = program.size_of(of).map_or(0, |(_, most)| most.div_ceil(8));
            let size = bytes.next_multiple_of(8).clamp(8, MAX_KEY);
            all.scratch = Some(all.add("kaido_scratch", MapKind::Array, (4, size), 1));
        }
        all.have_names_of_their_own(program, elaborated)?;
        Ok(all)
    }

    /// Maps are looked up by name, and `a.b_c` and `a_b.c` have the same map name.
    fn have_names_of_their_own(
        &self,
        program: &Program,
        elaborated: &Elaborated,
    ) -> Result<(), NotCompiled> {
        let mut names = HashSet::new();
        let Some(double) = self.maps.iter().find(|map| !names.insert(&map.name)) else {
            return Ok(());
        };
        let tables = elaborated
            .tables
            .iter()
            .map(|(id, name)| (name, program.tables[id.index()].declared.span));
        let sets = elaborated.value_sets.iter();
        let sets = sets.map(|(id, name)| (name, program.value_sets[id.index()].declared.span));
        let objects = elaborated.objects.iter().map(|object| (&object.name, object.span));
        let is_one =
            |name: &str| map_name(name) == double.name || default_action_of(name) == double.name;
        let all = tables.chain(sets).chain(objects).filter(|(name, _)| is_one(name));
        let (said, spans): (Vec<_>, Vec<_>) =
            all.map(|(name, span)| (format!("`{name}`"), span)).unzip();
        Err(NotCompiled {
            span: spans.last().copied().unwrap_or_default(),
            what: format!("{}: their maps have the same name, `{}`", said.join(", "), double.name),
            help: Some("give one of them another name, or one by `@name(\"…\")`".to_owned()),
        })
    }

    /// Removes the scratch map of a program that does not use it.
    pub(crate) fn leave_out_scratch(&mut self) {
        if self.scratch.take().is_some() {
            self.maps.pop();
        }
    }

    fn add(&mut self, name: &str, kind: MapKind, (key, value): (u32, u32), most: u32) -> u32 {
        self.maps.push(Map {
            name: map_name(name),
            kind,
            key_size: key,
            value_size: value,
            max_entries: most,
        });
        self.maps.len() as u32 - 1
    }

    fn add_table(&mut self, program: &Program, id: TableId, name: &str) -> Result<(), NotCompiled> {
        let table = &program.tables[id.index()];
        let span = table.declared.span;
        let mut keys = Vec::with_capacity(table.keys.len());
        for key in &table.keys {
            let leaf = match &leaves(program, &key.expression.of).as_deref() {
                Some([leaf]) => *leaf,
                _ => return refuse(key.expression.span, "this cannot be looked up"),
            };
            keys.push(KeyPart { matched: key.matched, leaf });
        }
        let mut actions = Vec::with_capacity(table.actions.len());
        for action in &table.actions {
            let parameters = &program.actions[action.call.action.index()].parameters;
            let mut open = Vec::new();
            for id in &parameters[action.call.arguments.len()..] {
                let parameter = &program.variables[id.index()];
                match leaves(program, &parameter.of) {
                    Some(leaves) => open.push(leaves),
                    None => {
                        return refuse(parameter.declared.span, "an entry cannot hold this");
                    }
                }
            }
            actions.push(open);
        }
        let (counter, meter) = (table.direct_counter.is_some(), table.direct_meter.is_some());
        let direct = Direct { counter, meter };
        let laid = TableMaps::of_shape(keys, actions, direct).map_err(|why| {
            let span = match why {
                NotLaid::Range { part, .. } => table.keys[part].expression.span,
                NotLaid::Prefixes | NotLaid::Large => span,
            };
            NotCompiled { span, what: why.to_string(), help: None }
        });
        let mut laid = laid?;
        if !laid.keys.is_empty() {
            let sizes = (laid.key_size, laid.value_size);
            laid.entries = Some(self.add(name, laid.kind(), sizes, table.size.max(1)));
        }
        // A counter or meter for the default action needs a place, even if the action is constant.
        if !table.default_is_constant || counter || meter {
            let name = default_action_of(name);
            laid.default_action = Some(self.add(&name, MapKind::Array, (4, laid.value_size), 1));
        }
        self.tables.push(laid);
        Ok(())
    }

    fn add_value_set(
        &mut self,
        program: &Program,
        id: ValueSetId,
        name: &str,
    ) -> Result<(), NotCompiled> {
        let set = &program.value_sets[id.index()];
        let leaves = leaves(program, &set.of).unwrap_or_default();
        let [leaf] = leaves[..] else {
            return refuse(set.declared.span, "a value set of this");
        };
        let words = words_of(leaf.width) * 8;
        let map = self.add(name, MapKind::Ternary, (words, 4), set.size.max(1));
        self.value_sets.push(map);
        Ok(())
    }

    fn add_object(
        &mut self,
        program: &Program,
        object: &PlacedObject,
    ) -> Result<Option<ArrayMap>, NotCompiled> {
        let mut leaves = match program.model_object(object.of) {
            Some(Object::Register) => {
                let Some(of) = object.types.first() else {
                    return refuse(Span::default(), "a register of nothing");
                };
                let Some(leaves) = leaves(program, of) else {
                    let span = object.arguments[0].span;
                    return refuse(span, "a register cannot hold this");
                };
                leaves
            }
            Some(Object::Counter) => vec![Leaf::new(64); Count::SIZE as usize / 8],
            Some(Object::Meter) => vec![Leaf::new(64); MeterCell::SIZE as usize / 8],
            _ => return Ok(None),
        };
        let value = lay_element(&mut leaves);
        let count = u32::try_from(object.elements()).unwrap_or(u32::MAX).max(1);
        let map = self.add(&object.name, MapKind::Array, (4, value), count);
        if let Err(why) = self.maps[map as usize].check() {
            let span = object.arguments.first().map_or(Span::default(), |size| size.span);
            return refuse(span, &why.to_string());
        }
        Ok(Some(ArrayMap { map, leaves }))
    }

    fn digest(
        &mut self,
        program: &Program,
        object: &PlacedObject,
    ) -> Result<Option<DigestData>, NotCompiled> {
        if program.model_object(object.of) != Some(Object::Digest) {
            return Ok(None);
        }
        let mut leaves =
            object.types.first().and_then(|of| leaves(program, of)).unwrap_or_default();
        let size = lay_element(&mut leaves);
        let id = self.digests.iter().flatten().count() as u32;
        if size > MAX_DIGEST || id as usize >= MAX_DIGESTS {
            let what = format!(
                "`{}`: a program has {MAX_DIGESTS} digests of {MAX_DIGEST} bytes at most",
                object.name
            );
            return refuse(object.span, &what);
        }
        Ok(Some(DigestData { id, leaves, size }))
    }
}

/// Returns the numbers that a value consists of, without offsets; None if it is not plain data.
pub(crate) fn leaves(program: &Program, of: &Type) -> Option<Vec<Leaf>> {
    let mut slot = 0;
    let leaf = |width| {
        let leaf = Leaf { slot, ..Leaf::new(width) };
        slot += limbs(width);
        leaf
    };
    Some(program.number_widths(of)?.into_iter().map(leaf).collect())
}

fn refuse<T>(span: Span, what: &str) -> Result<T, NotCompiled> {
    Err(NotCompiled { span, what: what.to_owned(), help: None })
}
