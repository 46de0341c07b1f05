//! Validated, indexed form of p4info.

use std::collections::{BTreeMap, BTreeSet};

use p4info::{ids, v1 as info};

use crate::error::{ConfigError, Error, RequestError, named};
use crate::types::{self, MAX_TOTAL_PARTS, Type, width_of};
use crate::values::{self, Bits, Call};

/// Maximum number of cells of a counter, a meter or a register.
pub const MAX_CELLS: u64 = 1 << 20;

/// Maximum number of metadata fields of packet-in and packet-out, which each packet has.
const MAX_METADATA: usize = 256;

/// A program as described by p4info, indexed by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pipeline {
    /// Architecture; empty if p4info does not specify it.
    pub arch: String,
    /// Tables.
    pub tables: BTreeMap<u32, Table>,
    /// Actions of all tables.
    pub actions: BTreeMap<u32, Action>,
    /// Indexed counters.
    pub counters: BTreeMap<u32, Array>,
    /// Indexed meters.
    pub meters: BTreeMap<u32, Array>,
    /// Registers.
    pub registers: BTreeMap<u32, Register>,
    /// Parser value sets.
    pub value_sets: BTreeMap<u32, ValueSet>,
    /// Digests, whose type is that of a value.
    pub digests: BTreeMap<u32, Register>,
    /// Metadata fields of packet-out.
    pub packet_out: Vec<Param>,
    /// Metadata fields of packet-in.
    pub packet_in: Vec<Param>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Name.
    pub name: String,
    /// Match fields.
    pub fields: Vec<Field>,
    /// Actions by id.
    pub actions: BTreeMap<u32, Scope>,
    /// Action ids in p4info order, which is the order in the program.
    pub order: Vec<u32>,
    /// Default action, if it is `const`.
    pub constant_default: Option<u32>,
    /// Initial default action, if p4info specifies it.
    pub initial_default: Option<Call>,
    /// Maximum number of entries; 0 if p4info does not specify it.
    pub size: u64,
    /// True if the entries are `const`.
    pub constant: bool,
    /// True if the table has a direct counter.
    pub counter: bool,
    /// Type of the direct meter, if the table has one.
    pub meter: Option<info::meter_spec::Type>,
}

/// A match field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Id, unique within the table.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// Match kind.
    pub kind: MatchKind,
}

/// Match kind of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// All bits are equal.
    Exact,
    /// Longest prefix.
    Lpm,
    /// The bits of a mask are equal; the entry with the highest priority applies.
    Ternary,
    /// Between two values, inclusive.
    Range,
    /// All bits are equal, or the entry omits the field.
    Optional,
}

/// Scope of an action in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Entries and the default action.
    Anywhere,
    /// Entries only (`@tableonly`).
    Entries,
    /// The default action only (`@defaultonly`).
    Default,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// Name.
    pub name: String,
    /// Parameters set by the control plane.
    pub params: Vec<Param>,
}

/// A parameter of an action, or a packet metadata field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Id, unique within the action.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Width in bits.
    pub width: u32,
}

/// An indexed counter or meter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// Name.
    pub name: String,
    /// Number of cells.
    pub size: u64,
    /// Type of a meter; the default value for a counter.
    pub meter: info::meter_spec::Type,
}

/// A register, or a digest, which has one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// Name.
    pub name: String,
    /// Number of cells.
    pub size: u64,
    /// Type of a cell.
    pub of: Type,
}

/// A parser value set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSet {
    /// Name.
    pub name: String,
    /// Match fields.
    pub fields: Vec<Field>,
    /// Maximum number of members.
    pub size: u64,
}

impl Table {
    /// Returns true if several entries can match, so that priorities are required.
    pub fn has_priorities(&self) -> bool {
        let decides = |field: &Field| !matches!(field.kind, MatchKind::Exact | MatchKind::Lpm);
        self.fields.iter().any(decides)
    }
}

fn bad(of: &str, problem: &'static str) -> Error {
    Error::Config(ConfigError::Info { of: named(of), problem })
}

/// Parses p4info. Rejects contradictions and unsupported features.
struct Reader<'a> {
    info: &'a info::P4Info,
    named: &'a info::P4TypeInfo,
    ids: BTreeSet<u32>,
    /// Number of parts left for types.
    parts: usize,
}

impl Pipeline {
    /// Parses and validates p4info.
    ///
    /// # Errors
    ///
    /// Fails if p4info contradicts itself or uses unsupported features.
    pub fn new(info: &info::P4Info) -> Result<Self, Error> {
        let none = info::P4TypeInfo::default();
        let named = info.type_info.as_ref().unwrap_or(&none);
        Reader { info, named, ids: BTreeSet::new(), parts: MAX_TOTAL_PARTS }.read()
    }
}

impl Reader<'_> {
    fn read(mut self) -> Result<Pipeline, Error> {
        let info = self.info;
        let arch = info.pkg_info.as_ref().map_or("", |package| &package.arch).to_owned();
        let mut made = Pipeline { arch, ..Pipeline::default() };
        if let Some(one) = info.action_profiles.first() {
            let name = one.preamble.as_ref().map_or("", |one| &one.name);
            return Err(bad(name, "action profiles are not supported"));
        }
        for action in &info.actions {
            let (id, name) = self.id(action.preamble.as_ref(), ids::ACTION)?;
            let (mut params, mut ids) = (Vec::new(), BTreeSet::new());
            for one in &action.params {
                params.push(param(&mut ids, one.id, &one.name, one.bitwidth)?);
            }
            made.actions.insert(id, Action { name, params });
        }
        for table in &info.tables {
            let (id, name) = self.id(table.preamble.as_ref(), ids::TABLE)?;
            made.tables.insert(id, read_table(table, name, &made.actions)?);
        }
        for set in &info.value_sets {
            let (id, name) = self.id(set.preamble.as_ref(), ids::VALUE_SET)?;
            let size = u64::try_from(set.size).map_err(|_| bad(&name, "a negative size"))?;
            let fields = fields(&set.r#match, &name)?;
            made.value_sets.insert(id, ValueSet { name, fields, size });
        }
        self.counters_and_meters(&mut made)?;
        for one in &info.registers {
            let (id, name) = self.id(one.preamble.as_ref(), ids::REGISTER)?;
            let spec = one.type_spec.as_ref();
            let of = types::resolve(self.named, &name, spec, &mut self.parts)?;
            let size = cells(one.size.into(), &name)?;
            made.registers.insert(id, Register { name, size, of });
        }
        for one in &info.digests {
            let (id, name) = self.id(one.preamble.as_ref(), ids::DIGEST)?;
            let spec = one.type_spec.as_ref();
            let of = types::resolve(self.named, &name, spec, &mut self.parts)?;
            made.digests.insert(id, Register { name, size: 1, of });
        }
        for one in &info.controller_packet_metadata {
            let (_, name) = self.id(one.preamble.as_ref(), ids::CONTROLLER_HEADER)?;
            if one.metadata.len() > MAX_METADATA {
                return Err(bad(&name, "it has more than 256 fields"));
            }
            let (mut params, mut ids) = (Vec::new(), BTreeSet::new());
            for one in &one.metadata {
                params.push(param(&mut ids, one.id, &one.name, one.bitwidth)?);
            }
            match &*name {
                "packet_out" => made.packet_out = params,
                "packet_in" => made.packet_in = params,
                _ => return Err(bad(&name, "neither packet_in nor packet_out")),
            }
        }
        Ok(made)
    }

    /// Id and name of an object. Ids are unique, and their prefix determines the kind.
    fn id(&mut self, preamble: Option<&info::Preamble>, kind: u8) -> Result<(u32, String), Error> {
        let preamble =
            preamble.ok_or(Error::Request(RequestError::NotSet("a preamble in p4info")))?;
        if preamble.id >> 24 != u32::from(kind) {
            return Err(bad(&preamble.name, "its id is one of another kind"));
        }
        if !self.ids.insert(preamble.id) {
            return Err(Error::Config(ConfigError::DuplicateId(preamble.id)));
        }
        Ok((preamble.id, preamble.name.clone()))
    }

    fn counters_and_meters(&mut self, made: &mut Pipeline) -> Result<(), Error> {
        let info = self.info;
        let plain = info::meter_spec::Type::TwoRateThreeColor;
        for one in &info.counters {
            let (id, name) = self.id(one.preamble.as_ref(), ids::COUNTER)?;
            let size = cells(one.size, &name)?;
            made.counters.insert(id, Array { name, size, meter: plain });
        }
        for one in &info.meters {
            let (id, name) = self.id(one.preamble.as_ref(), ids::METER)?;
            let size = cells(one.size, &name)?;
            let meter = one.spec.as_ref().map_or(plain, info::MeterSpec::r#type);
            made.meters.insert(id, Array { name, size, meter });
        }
        let mut direct = BTreeMap::new();
        for one in &info.direct_counters {
            let (id, name) = self.id(one.preamble.as_ref(), ids::DIRECT_COUNTER)?;
            let table = table_of(made, one.direct_table_id, &name)?;
            table.counter = true;
            direct.insert(id, one.direct_table_id);
        }
        for one in &info.direct_meters {
            let (id, name) = self.id(one.preamble.as_ref(), ids::DIRECT_METER)?;
            let table = table_of(made, one.direct_table_id, &name)?;
            table.meter = Some(one.spec.as_ref().map_or(plain, info::MeterSpec::r#type));
            direct.insert(id, one.direct_table_id);
        }
        for table in &info.tables {
            let preamble = table.preamble.as_ref();
            let (id, name) = preamble.map_or((0, ""), |one| (one.id, &*one.name));
            if table.direct_resource_ids.iter().any(|one| direct.get(one) != Some(&id)) {
                return Err(bad(name, "a direct resource that is none of this table's"));
            }
        }
        Ok(())
    }
}

fn table_of<'a>(made: &'a mut Pipeline, id: u32, name: &str) -> Result<&'a mut Table, Error> {
    made.tables.get_mut(&id).ok_or_else(|| bad(name, "its table is not there"))
}

fn read_table(
    table: &info::Table,
    name: String,
    actions: &BTreeMap<u32, Action>,
) -> Result<Table, Error> {
    let fields = fields(&table.match_fields, &name)?;
    if table.implementation_id != 0 {
        return Err(bad(&name, "action profiles are not supported"));
    }
    let scope = |one: &info::ActionRef| match one.scope() {
        info::action_ref::Scope::TableAndDefault => Some(Scope::Anywhere),
        info::action_ref::Scope::TableOnly => Some(Scope::Entries),
        info::action_ref::Scope::DefaultOnly => Some(Scope::Default),
        info::action_ref::Scope::GroupAction => None,
    };
    let mut scopes = BTreeMap::new();
    for one in &table.action_refs {
        if !actions.contains_key(&one.id) {
            return Err(bad(&name, "an action that is not there"));
        }
        let scope = scope(one).ok_or_else(|| bad(&name, "actions of groups are not supported"))?;
        if scopes.insert(one.id, scope).is_some() {
            return Err(bad(&name, "duplicate action"));
        }
    }
    let constant = Some(table.const_default_action_id).filter(|id| *id != 0);
    if constant.is_some_and(|id| !scopes.contains_key(&id)) {
        return Err(bad(&name, "its default action is none of its actions"));
    }
    let call = table.initial_default_action.as_ref();
    let initial = call.map(|call| initial_default(call, &name, actions)).transpose()?;
    // An action without parameters is fully specified by its id.
    let known = constant.filter(|id| actions.get(id).is_some_and(|one| one.params.is_empty()));
    let initial = initial.or_else(|| known.map(|action| Call { action, arguments: Vec::new() }));
    Ok(Table {
        fields,
        actions: scopes,
        order: table.action_refs.iter().map(|one| one.id).collect(),
        constant_default: constant,
        initial_default: initial,
        size: u64::try_from(table.size).map_err(|_| bad(&name, "a negative size"))?,
        constant: table.is_const_table,
        counter: false,
        meter: None,
        name,
    })
}

fn initial_default(
    call: &info::TableActionCall,
    name: &str,
    actions: &BTreeMap<u32, Action>,
) -> Result<Call, Error> {
    let wrong = || bad(name, "its initial default action is not whole");
    let action = actions.get(&call.action_id).ok_or_else(wrong)?;
    // The first of duplicates counts.
    let given: BTreeMap<_, _> =
        call.arguments.iter().rev().map(|one| (one.param_id, one)).collect();
    let argument = |param: &Param| -> Option<Bits> {
        let given = given.get(&param.id)?;
        values::unsigned(&given.value, param.width)
    };
    let arguments = action.params.iter().map(|param| argument(param).ok_or_else(wrong));
    Ok(Call { action: call.action_id, arguments: arguments.collect::<Result<_, _>>()? })
}

fn fields(all: &[info::MatchField], of: &str) -> Result<Vec<Field>, Error> {
    use info::match_field::{Match, MatchType};
    let (mut fields, mut ids) = (Vec::new(), BTreeSet::new());
    for one in all {
        let kind = match &one.r#match {
            Some(Match::MatchType(kind)) => MatchType::try_from(*kind).ok(),
            _ => None,
        };
        let kind = match kind {
            Some(MatchType::Exact) => MatchKind::Exact,
            Some(MatchType::Lpm) => MatchKind::Lpm,
            Some(MatchType::Ternary) => MatchKind::Ternary,
            Some(MatchType::Range) => MatchKind::Range,
            Some(MatchType::Optional) => MatchKind::Optional,
            _ => return Err(bad(of, "a match field of a kind that is not supported")),
        };
        let width = width_of(one.bitwidth);
        let width = width.ok_or_else(|| bad(of, "a match field has a width that no number has"))?;
        if one.id == 0 || !ids.insert(one.id) {
            return Err(bad(of, "the id of a match field is 0 or a duplicate"));
        }
        fields.push(Field { id: one.id, name: one.name.clone(), width, kind });
    }
    Ok(fields)
}

/// A parameter; `ids` are those of the others.
fn param(ids: &mut BTreeSet<u32>, id: u32, name: &str, width: i32) -> Result<Param, Error> {
    if id == 0 || !ids.insert(id) {
        return Err(bad(name, "its id is 0 or a duplicate"));
    }
    let problem = match width {
        0 => "it is made of parts: P4Runtime has no values for it",
        _ => "it has a width that no number has",
    };
    let width = width_of(width).ok_or_else(|| bad(name, problem))?;
    Ok(Param { id, name: name.to_owned(), width })
}

fn cells(size: i64, name: &str) -> Result<u64, Error> {
    let size = u64::try_from(size).map_err(|_| bad(name, "a negative size"))?;
    (size <= MAX_CELLS).then_some(size).ok_or_else(|| bad(name, "more than 2^20 cells"))
}
