//! Validates updates of counters, meters, registers, value sets and digests.

use std::collections::BTreeSet;
use std::sync::Arc;

use p4info::v1::meter_spec;

use crate::data;
use crate::device::{Change, Count, Meter, Target};
use crate::error::{EntryError, Error, RequestError, ValueError, named};
use crate::matches;
use crate::pipeline::{Array, Pipeline, Register, Table};
use crate::plan::{Place, Plan};
use crate::store::{Effect, MeterState, Row, Store, TableState};
use crate::targets;
use crate::v1::{self, update};

/// Validates an index; `None` for all cells.
pub(crate) fn index(
    index: Option<&v1::Index>,
    name: &str,
    size: u64,
) -> Result<Option<u64>, Error> {
    let Some(v1::Index { index }) = index else { return Ok(None) };
    let (of, index) = (named(name), *index);
    match u64::try_from(index) {
        Err(_) => Err(Error::Value(ValueError::NegativeIndex { of, index })),
        Ok(at) if at >= size => Err(Error::Value(ValueError::Index { of, index, size })),
        Ok(at) => Ok(Some(at)),
    }
}

fn negative(name: &str) -> Error {
    Error::Value(ValueError::Negative {
        of: named(name),
        what: "number of packets, bytes or units",
    })
}

/// Validates counter data.
pub(crate) fn count(data: &v1::CounterData, name: &str) -> Result<Count, Error> {
    let number = |number: i64| u64::try_from(number).map_err(|_| negative(name));
    Ok(Count { packets: number(data.packet_count)?, bytes: number(data.byte_count)? })
}

/// Validates a meter configuration; `None` if all packets are green.
pub(crate) fn meter(
    config: Option<&v1::MeterConfig>,
    kind: meter_spec::Type,
    name: &str,
) -> Result<Option<Meter>, Error> {
    let Some(config) = config else { return Ok(None) };
    let number = |number: i64| u64::try_from(number).map_err(|_| negative(name));
    let meter = Meter {
        cir: number(config.cir)?,
        cburst: number(config.cburst)?,
        pir: number(config.pir)?,
        pburst: number(config.pburst)?,
        eburst: number(config.eburst)?,
    };
    let one_rate = (meter.pir, meter.pburst) == (meter.cir, meter.cburst);
    let problem = match kind {
        meter_spec::Type::TwoRateThreeColor if meter.eburst != 0 => {
            "a meter with two rates has no excess burst"
        }
        meter_spec::Type::SingleRateThreeColor if !one_rate => {
            "a meter with one rate has its peak rate and burst equal to the committed ones"
        }
        meter_spec::Type::SingleRateTwoColor if !one_rate || meter.eburst != 0 => {
            "a meter with one rate and two colors has one rate and one burst"
        }
        _ if meter.pir < meter.cir => "the peak rate is below the committed one",
        _ => return Ok(Some(meter)),
    };
    Err(Error::Value(ValueError::Rates { of: named(name), problem }))
}

fn only_modify(kind: update::Type, what: &'static str) -> Result<(), Error> {
    match kind {
        update::Type::Modify => Ok(()),
        update::Type::Unspecified => Err(Error::Request(RequestError::Unspecified("update type"))),
        _ => Err(Error::Entry(EntryError::OnlyModified(what))),
    }
}

/// Rejects per-color meter counters, which are not implemented.
pub(crate) fn no_colors(data: Option<&v1::MeterCounterData>) -> Result<(), Error> {
    data.map_or(Ok(()), |_| {
        Err(Error::Request(RequestError::Unsupported("counters of meters' colors")))
    })
}

pub(crate) fn counter(pipeline: &Pipeline, id: u32) -> Result<&Array, Error> {
    pipeline.counters.get(&id).ok_or(Error::Value(ValueError::UnknownId { kind: "counter", id }))
}

pub(crate) fn meter_array(pipeline: &Pipeline, id: u32) -> Result<&Array, Error> {
    pipeline.meters.get(&id).ok_or(Error::Value(ValueError::UnknownId { kind: "meter", id }))
}

pub(crate) fn register(pipeline: &Pipeline, id: u32) -> Result<&Register, Error> {
    let register = pipeline
        .registers
        .get(&id)
        .ok_or(Error::Value(ValueError::UnknownId { kind: "register", id }))?;
    match register.of.is_known() {
        true => Ok(register),
        false => Err(Error::Request(RequestError::Unsupported("registers of such a type"))),
    }
}

pub(crate) fn plan_counter(
    pipeline: &Pipeline,
    kind: update::Type,
    entry: &v1::CounterEntry,
) -> Result<Plan, Error> {
    let id = entry.counter_id;
    let array = counter(pipeline, id)?;
    only_modify(kind, "counters")?;
    let at = index(entry.index.as_ref(), &array.name, array.size)?;
    let data =
        entry.data.as_ref().ok_or(Error::Request(RequestError::NotSet("the counter's data")))?;
    let change = Change::Counter { id, at, count: count(data, &array.name)? };
    Ok(Plan { change: Some(change), effect: Effect::Nothing, place: Place::Cell(id, at) })
}

pub(crate) fn plan_register(
    pipeline: &Pipeline,
    kind: update::Type,
    entry: &v1::RegisterEntry,
) -> Result<Plan, Error> {
    let id = entry.register_id;
    let register = register(pipeline, id)?;
    only_modify(kind, "registers")?;
    let at = index(entry.index.as_ref(), &register.name, register.size)?;
    let data =
        entry.data.as_ref().ok_or(Error::Request(RequestError::NotSet("the register's data")))?;
    let data = data::from_message(data, &register.of, &register.name)?;
    let change = Change::Register { id, at, data };
    Ok(Plan { change: Some(change), effect: Effect::Nothing, place: Place::Cell(id, at) })
}

pub(crate) fn plan_meter(
    pipeline: &Pipeline,
    kind: update::Type,
    entry: &v1::MeterEntry,
) -> Result<Plan, Error> {
    let id = entry.meter_id;
    let array = meter_array(pipeline, id)?;
    only_modify(kind, "meters")?;
    no_colors(entry.counter_data.as_ref())?;
    let at = index(entry.index.as_ref(), &array.name, array.size)?;
    let meter = meter(entry.config.as_ref(), array.meter, &array.name)?;
    let effect = match at {
        Some(at) => Effect::Meter { id, at, meter, set: true },
        None => Effect::Meters { id, state: MeterState { all: meter, ..MeterState::default() } },
    };
    let change = Change::Meter { id, at, meter };
    Ok(Plan { change: Some(change), effect, place: Place::Cell(id, at) })
}

/// Table and entry of a direct counter or meter.
fn direct_of<'a>(
    pipeline: &'a Pipeline,
    store: &'a Store,
    entry: Option<&v1::TableEntry>,
) -> Result<(&'a Table, &'a TableState, u32, Target), Error> {
    let entry = entry.ok_or(Error::Request(RequestError::NotSet("the table entry")))?;
    let (table, state) = targets::table(pipeline, store, entry.table_id)?;
    let target = targets::target(table, entry)?;
    if let Target::Entry(key) = &target
        && !state.rows.contains_key(key)
    {
        return Err(Error::Entry(EntryError::NoEntry(named(&table.name))));
    }
    Ok((table, state, entry.table_id, target))
}

fn place_of(id: u32, target: &Target) -> Place {
    match target {
        Target::Entry(key) => Place::Row(id, Arc::clone(key)),
        Target::Default => Place::Default(id),
    }
}

pub(crate) fn plan_direct_counter(
    pipeline: &Pipeline,
    store: &Store,
    kind: update::Type,
    entry: &v1::DirectCounterEntry,
) -> Result<Plan, Error> {
    let (table, _, id, of) = direct_of(pipeline, store, entry.table_entry.as_ref())?;
    only_modify(kind, "direct counters")?;
    if !table.counter {
        return Err(Error::Entry(EntryError::NoDirect(named(&table.name), "counter")));
    }
    let data =
        entry.data.as_ref().ok_or(Error::Request(RequestError::NotSet("the counter's data")))?;
    let count = count(data, &table.name)?;
    let place = place_of(id, &of);
    let change = Change::DirectCounter { table: id, of, count };
    Ok(Plan { change: Some(change), effect: Effect::Nothing, place })
}

pub(crate) fn plan_direct_meter(
    pipeline: &Pipeline,
    store: &Store,
    kind: update::Type,
    entry: &v1::DirectMeterEntry,
) -> Result<Plan, Error> {
    let (table, state, id, of) = direct_of(pipeline, store, entry.table_entry.as_ref())?;
    only_modify(kind, "direct meters")?;
    no_colors(entry.counter_data.as_ref())?;
    let none = || Error::Entry(EntryError::NoDirect(named(&table.name), "meter"));
    let kind = table.meter.ok_or_else(none)?;
    let meter = meter(entry.config.as_ref(), kind, &table.name)?;
    let effect = match &of {
        Target::Entry(key) => {
            let old = state
                .rows
                .get(key)
                .ok_or_else(|| Error::Entry(EntryError::NoEntry(named(&table.name))))?;
            let row = Some(Arc::new(Row { meter, ..Row::clone(old) }));
            Effect::Row { table: id, key: Arc::clone(key), row }
        }
        Target::Default => {
            let mut row = state.default.clone();
            row.meter = meter;
            Effect::Default { table: id, row }
        }
    };
    let place = place_of(id, &of);
    Ok(Plan { change: Some(Change::DirectMeter { table: id, of, meter }), effect, place })
}

pub(crate) fn plan_value_set(
    pipeline: &Pipeline,
    kind: update::Type,
    entry: &v1::ValueSetEntry,
) -> Result<Plan, Error> {
    let id = entry.value_set_id;
    let set = pipeline
        .value_sets
        .get(&id)
        .ok_or(Error::Value(ValueError::UnknownId { kind: "value set", id }))?;
    only_modify(kind, "value sets")?;
    if entry.members.len() as u64 > set.size {
        return Err(Error::Entry(EntryError::Full { table: named(&set.name), size: set.size }));
    }
    let mut members = BTreeSet::new();
    for member in &entry.members {
        if !members.insert(matches::parse_fields(&set.fields, &set.name, &member.r#match)?) {
            return Err(Error::Entry(EntryError::DuplicateMember(named(&set.name))));
        }
    }
    let members: Vec<_> = members.into_iter().collect();
    let effect = Effect::Set { id, members: Arc::new(members.clone()) };
    let change = Change::ValueSet { id, members };
    Ok(Plan { change: Some(change), effect, place: Place::Cell(id, None) })
}

/// Plans an update of a digest. Digests are enabled and disabled in this service, not in the
/// device.
pub(crate) fn plan_digest(
    pipeline: &Pipeline,
    store: &Store,
    kind: update::Type,
    entry: &v1::DigestEntry,
) -> Result<Plan, Error> {
    let id = entry.digest_id;
    let digest = pipeline
        .digests
        .get(&id)
        .ok_or(Error::Value(ValueError::UnknownId { kind: "digest", id }))?;
    let is_on = store.digests.contains_key(&id);
    let config = entry.config.unwrap_or_default();
    let config = match (kind, is_on) {
        (update::Type::Insert, true) => {
            return Err(Error::Entry(EntryError::DigestOn(named(&digest.name))));
        }
        (update::Type::Modify | update::Type::Delete, false) => {
            return Err(Error::Entry(EntryError::DigestOff(named(&digest.name))));
        }
        (update::Type::Unspecified, _) => {
            return Err(Error::Request(RequestError::Unspecified("update type")));
        }
        (update::Type::Delete, true) => None,
        _ if config.max_timeout_ns < 0 || config.ack_timeout_ns < 0 => {
            return Err(Error::Value(ValueError::Negative {
                of: named(&digest.name),
                what: "time",
            }));
        }
        _ if config.max_list_size < 0 => {
            return Err(Error::Value(ValueError::Negative {
                of: named(&digest.name),
                what: "size of lists",
            }));
        }
        _ => Some(config),
    };
    Ok(Plan { change: None, effect: Effect::Digest { id, config }, place: Place::Cell(id, None) })
}
