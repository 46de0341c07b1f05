//! Maps p4info names to an object's maps, with validation.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use p4::ir;
use p4_ebpf::layout::{
    Direct, KeyPart, Leaf, TableMaps, default_action_of, lay_element, map_name, words_of,
};
use p4_object::cells::{Count, MeterCell};
use p4_object::{Map, MapKind, Object};
use p4info::v1::meter_spec;

use crate::device::Refused;
use crate::pipeline::{self, MatchKind, Pipeline};
use crate::types::{HeaderField, Type};

/// Names of the supported architecture, as used by p4c and by us.
const ARCHITECTURES: [&str; 3] = ["", "ubpf", "ubpf_model"];

/// Limit of the parts of keys and of actions of all tables. A part takes less than 100 bytes, and
/// tables with the same action have its parameters each.
const MAX_PARTS: usize = 1 << 20;

/// Layout of a table.
#[derive(Debug)]
pub(super) struct TableAt {
    pub(super) name: String,
    pub(super) at: TableMaps,
    /// Action ids, by the action numbers in values.
    pub(super) actions: Vec<u32>,
}

/// Layout of a register.
#[derive(Debug)]
pub(super) struct RegisterAt {
    pub(super) name: String,
    /// Map of the register; `None` if it has been eliminated because nothing reads it.
    pub(super) map: Option<u32>,
    pub(super) leaves: Vec<Leaf>,
    pub(super) bytes: u32,
    pub(super) of: Type,
    pub(super) size: u64,
}

/// Layout of an indexed counter or meter.
#[derive(Debug)]
pub(super) struct ArrayAt {
    pub(super) name: String,
    pub(super) map: u32,
    pub(super) size: u64,
}

/// Layout of a digest.
#[derive(Debug, Clone)]
pub(super) struct DigestAt {
    /// P4Runtime id.
    pub(super) id: u32,
    pub(super) leaves: Vec<Leaf>,
    pub(super) of: Type,
}

/// Layout of a value set.
#[derive(Debug)]
pub(super) struct SetAt {
    pub(super) name: String,
    pub(super) map: u32,
    pub(super) width: u32,
}

/// Layouts of all objects that the control plane can access, by id.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    pub(super) tables: BTreeMap<u32, TableAt>,
    pub(super) registers: BTreeMap<u32, RegisterAt>,
    pub(super) sets: BTreeMap<u32, SetAt>,
    pub(super) counters: BTreeMap<u32, ArrayAt>,
    pub(super) meters: BTreeMap<u32, ArrayAt>,
    /// Digests, by their ids in the program.
    pub(super) digests: BTreeMap<u32, DigestAt>,
}

fn invalid<T>(what: String) -> Result<T, Refused> {
    Err(Refused::Invalid(what))
}

impl Layouts {
    /// Locates the objects of p4info in an object file.
    pub(super) fn new(pipeline: &Pipeline, object: &Object) -> Result<Self, Refused> {
        let arch = pipeline.arch.to_lowercase();
        if !ARCHITECTURES.contains(&&*arch) {
            let arch = &pipeline.arch;
            return invalid(format!("its p4info is for the architecture `{arch}`, not for `ubpf`"));
        }
        let maps = Maps { all: &object.maps, used: RefCell::default() };
        let mut all = Self::default();
        let parts = |table: &pipeline::Table| {
            let params = |id| pipeline.actions.get(id).map_or(0, |action| action.params.len());
            table.fields.len() + table.order.iter().map(params).sum::<usize>()
        };
        let parts = pipeline.tables.values().map(parts).fold(0, usize::saturating_add);
        if parts > MAX_PARTS {
            return invalid(format!(
                "its tables have {parts} parts of keys and actions: the limit is {MAX_PARTS}"
            ));
        }
        for (id, table) in &pipeline.tables {
            all.tables.insert(*id, maps.table(pipeline, table)?);
        }
        for (id, register) in &pipeline.registers {
            all.registers.insert(*id, maps.register(register)?);
        }
        for (id, set) in &pipeline.value_sets {
            all.sets.insert(*id, maps.set(set)?);
        }
        for (id, counter) in &pipeline.counters {
            all.counters.insert(*id, maps.array("counter", counter, Count::SIZE)?);
        }
        for (id, meter) in &pipeline.meters {
            two_rates(&format!("meter `{}`", meter.name), meter.meter)?;
            all.meters.insert(*id, maps.array("meter", meter, MeterCell::SIZE)?);
        }
        for (id, digest) in &pipeline.digests {
            let (at, digest) = digest_at(object, *id, digest)?;
            all.digests.insert(at, digest);
        }
        Ok(all)
    }
}

fn two_rates(of: &str, kind: meter_spec::Type) -> Result<(), Refused> {
    match kind {
        meter_spec::Type::TwoRateThreeColor => Ok(()),
        _ => Err(Refused::Unsupported(format!("{of}: meters have two rates and three colors"))),
    }
}

/// Layout of a digest, with its id in the program.
fn digest_at(
    object: &Object,
    id: u32,
    digest: &pipeline::Register,
) -> Result<(u32, DigestAt), Refused> {
    let of = format!("digest `{}`", digest.name);
    let name = map_name(&digest.name);
    let Some((at, found)) = (0..).zip(&object.digests).find(|(_, one)| one.name == name) else {
        return invalid(format!("{of}: the program is not the one that p4info describes"));
    };
    let mut leaves = Vec::new();
    if !flatten(&digest.of, &mut leaves) {
        return Err(Refused::Unsupported(format!("{of}: digests of such a type")));
    }
    let (bytes, has) = (lay_element(&mut leaves), found.size);
    if bytes != has {
        return invalid(format!("{of}: the program has {has} bytes, by p4info it is {bytes}"));
    }
    Ok((at, DigestAt { id, leaves, of: digest.of.clone() }))
}

struct Maps<'o> {
    all: &'o [Map],
    /// Maps of the objects so far.
    used: RefCell<BTreeSet<u32>>,
}

impl Maps<'_> {
    fn find(&self, name: &str) -> Option<(u32, &Map)> {
        (0..).zip(self.all).find(|(_, map)| map.name == name)
    }

    /// Gives a map to an object. Two objects with one map, which only names in p4info that are not
    /// unique can have, would each have all of its entries.
    fn take(&self, of: &str, at: u32) -> Result<(), Refused> {
        match self.used.borrow_mut().insert(at) {
            true => Ok(()),
            false => invalid(format!("{of}: another object of p4info has its map")),
        }
    }

    /// Finds the map with this name, and checks its kind and sizes.
    fn fitting(
        &self,
        of: &str,
        name: &str,
        kind: MapKind,
        (key, value): (u32, u32),
    ) -> Result<(u32, &Map), Refused> {
        let Some((at, map)) = self.find(name) else {
            return invalid(format!(
                "{of} has no map `{name}`: the program is not the one that p4info describes"
            ));
        };
        let (has, wants) = match () {
            () if map.kind != kind => (kind_name(map.kind).to_owned(), kind_name(kind).to_owned()),
            () if map.key_size != key => {
                (format!("a key of {} bytes", map.key_size), format!("{key} bytes"))
            }
            () if map.value_size != value => {
                (format!("values of {} bytes", map.value_size), format!("{value} bytes"))
            }
            () => {
                self.take(of, at)?;
                return Ok((at, map));
            }
        };
        invalid(format!("{of}: its map `{name}` has {has}, by p4info it is {wants}"))
    }

    fn table(&self, pipeline: &Pipeline, table: &pipeline::Table) -> Result<TableAt, Refused> {
        let of = format!("table `{}`", table.name);
        if let Some(kind) = table.meter {
            two_rates(&of, kind)?;
        }
        let direct = Direct { counter: table.counter, meter: table.meter.is_some() };
        let key = |field: &pipeline::Field| KeyPart {
            matched: match field.kind {
                MatchKind::Exact => ir::MatchKind::Exact,
                MatchKind::Lpm => ir::MatchKind::Lpm,
                MatchKind::Ternary => ir::MatchKind::Ternary,
                MatchKind::Range => ir::MatchKind::Range,
                MatchKind::Optional => ir::MatchKind::Optional,
            },
            leaf: Leaf::new(field.width),
        };
        let action = |id: &u32| -> Vec<Vec<Leaf>> {
            let params = pipeline.actions.get(id).map_or(&[][..], |action| &action.params);
            params.iter().map(|param| vec![Leaf::new(param.width)]).collect()
        };
        let keys = table.fields.iter().map(key).collect();
        let laid = TableMaps::of_shape(keys, table.order.iter().map(action).collect(), direct);
        let mut at = laid.map_err(|why| Refused::Invalid(format!("{of}: {why}")))?;
        if !at.keys.is_empty() {
            let sizes = (at.key_size, at.value_size);
            at.entries = Some(self.fitting(&of, &map_name(&table.name), at.kind(), sizes)?.0);
        }
        let name = default_action_of(&table.name);
        // A constant default action needs no map unless it has direct resources; p4c creates one
        // anyway.
        let counts = direct.counter || direct.meter;
        if counts || table.constant_default.is_none() || self.find(&name).is_some() {
            let sizes = (4, at.value_size);
            at.default_action = Some(self.fitting(&of, &name, MapKind::Array, sizes)?.0);
        }
        Ok(TableAt { name: table.name.clone(), at, actions: table.order.clone() })
    }

    /// Finds an array with this number of cells.
    fn cells(&self, of: &str, name: &str, sizes: (u32, u32), wants: u64) -> Result<u32, Refused> {
        let (map, found) = self.fitting(of, name, MapKind::Array, sizes)?;
        let has = found.max_entries;
        if u64::from(has) < wants {
            return invalid(format!("{of}: its map has {has} cells, by p4info it has {wants}"));
        }
        Ok(map)
    }

    fn array(&self, kind: &str, array: &pipeline::Array, cell: u32) -> Result<ArrayAt, Refused> {
        let of = format!("{kind} `{}`", array.name);
        let sizes = (4, cell);
        let map = self.cells(&of, &map_name(&array.name), sizes, array.size)?;
        Ok(ArrayAt { name: array.name.clone(), map, size: array.size })
    }

    fn register(&self, register: &pipeline::Register) -> Result<RegisterAt, Refused> {
        let of = format!("register `{}`", register.name);
        let mut leaves = Vec::new();
        let name = map_name(&register.name);
        let (map, bytes) = if flatten(&register.of, &mut leaves) {
            let bytes = lay_element(&mut leaves);
            (Some(self.cells(&of, &name, (4, bytes), register.size)?), bytes)
        } else {
            // The program has the register, but the control plane cannot read it.
            leaves.clear();
            let found = self.find(&name);
            found.map_or(Ok(()), |(at, _)| self.take(&of, at))?;
            (found.map(|(at, _)| at), found.map_or(0, |(_, map)| map.value_size))
        };
        let (of, size) = (register.of.clone(), register.size);
        Ok(RegisterAt { name: register.name.clone(), map, leaves, bytes, of, size })
    }

    fn set(&self, set: &pipeline::ValueSet) -> Result<SetAt, Refused> {
        let of = format!("value set `{}`", set.name);
        let [field] = &set.fields[..] else {
            return Err(Refused::Unsupported(format!("{of}: it has several fields")));
        };
        let sizes = (words_of(field.width) * 8, 4);
        let (map, _) = self.fitting(&of, &map_name(&set.name), MapKind::Ternary, sizes)?;
        Ok(SetAt { name: set.name.clone(), map, width: field.width })
    }
}

fn kind_name(kind: MapKind) -> &'static str {
    match kind {
        MapKind::Array => "places (an array)",
        MapKind::Hash => "exact keys (a hash)",
        MapKind::LpmTrie => "prefixes (a trie)",
        MapKind::Ternary => "ternary keys",
    }
}

/// Flattens a type to numbers; false if it has other parts.
fn flatten(of: &Type, leaves: &mut Vec<Leaf>) -> bool {
    match of {
        Type::Bits(HeaderField { width, .. }) | Type::Enum(width) => leaves.push(Leaf::new(*width)),
        Type::Bool => leaves.push(Leaf::new(1)),
        Type::Struct(members) | Type::Tuple(members) => {
            return members.iter().all(|member| flatten(member, leaves));
        }
        Type::Header(_) | Type::Other => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{Action, Param, Scope, Table};

    /// Returns `tables` tables with an action of `params` parameters, and a map for its default.
    fn pipeline(tables: u32, params: u32, name: impl Fn(u32) -> String) -> (Pipeline, Object) {
        let param = |id| Param { id, name: id.to_string(), width: 8 };
        let action = Action { name: "act".to_owned(), params: (1..=params).map(param).collect() };
        let table = |at| Table {
            name: name(at),
            fields: Vec::new(),
            actions: [(1, Scope::Anywhere)].into(),
            order: vec![1],
            constant_default: None,
            initial_default: None,
            size: 0,
            constant: false,
            counter: false,
            meter: None,
        };
        let map = |at| Map {
            name: default_action_of(&name(at)),
            kind: MapKind::Array,
            key_size: 4,
            value_size: (4 + params).next_multiple_of(4),
            max_entries: 1,
        };
        let object = Object { maps: (0..tables).map(map).collect(), ..Object::default() };
        let tables = (0..tables).map(|at| (at, table(at))).collect();
        (Pipeline { tables, actions: [(1, action)].into(), ..Pipeline::default() }, object)
    }

    fn refused(tables: u32, params: u32, name: impl Fn(u32) -> String) -> String {
        let (pipeline, object) = pipeline(tables, params, name);
        Layouts::new(&pipeline, &object).unwrap_err().to_string()
    }

    /// Each of them would have all entries of the map.
    #[test]
    fn two_objects_do_not_share_a_map() {
        let (pipeline, object) = pipeline(2, 1, |at| format!("t{at}"));
        assert!(Layouts::new(&pipeline, &object).is_ok());
        let said = refused(2, 1, |_| "t".to_owned());
        assert_eq!(said, "table `t`: another object of p4info has its map");
    }

    #[test]
    fn the_parts_of_all_tables_are_limited() {
        let said = refused(2049, 512, |at| format!("t{at}"));
        assert_eq!(said, "its tables have 1049088 parts of keys and actions: the limit is 1048576");
    }
}
