//! Counters, meters, registers and digests.

use p4::ir::{Elaborated, PlacedObject, Program};
use p4::model::{Object, Unit};

use crate::ids::{self, Ids};
use crate::types::{Types, type_spec};
use crate::{Error, size, v1};

/// Returns the objects of one kind with their preambles.
fn all<'m>(
    program: &Program,
    elaborated: &'m Elaborated,
    kind: Object,
    high: u8,
) -> Result<Vec<(&'m PlacedObject, v1::Preamble)>, Error> {
    let objects = elaborated.objects.iter();
    let objects: Vec<_> =
        objects.filter(|one| program.model_object(one.of) == Some(kind)).collect();
    let said = objects.iter().map(|one| (&*one.name, &*one.annotations));
    let mut ids = Ids::new(high, said)?;
    let preamble = |one: &'m PlacedObject| (one, ids.preamble(&one.name, &one.annotations));
    Ok(objects.into_iter().map(preamble).collect())
}

fn counter_spec(program: &Program, object: &PlacedObject) -> Option<v1::CounterSpec> {
    use v1::counter_spec::Unit as Said;
    let unit = match program.unit(object) {
        Unit::Packets => Said::Packets,
        Unit::Bytes => Said::Bytes,
        Unit::Both => Said::Both,
    };
    Some(v1::CounterSpec { unit: unit.into() })
}

fn meter_spec(program: &Program, object: &PlacedObject) -> Option<v1::MeterSpec> {
    use v1::meter_spec::{Type, Unit as Said};
    let unit = match program.unit(object) {
        Unit::Bytes => Said::Bytes,
        _ => Said::Packets,
    };
    Some(v1::MeterSpec { unit: unit.into(), r#type: Type::TwoRateThreeColor.into() })
}

/// Describes counters and meters. The tables are already described, in order of their index.
pub(crate) fn counters_and_meters(
    program: &Program,
    elaborated: &Elaborated,
    info: &mut v1::P4Info,
) -> Result<(), Error> {
    for (object, preamble) in all(program, elaborated, Object::Counter, ids::COUNTER)? {
        info.counters.push(v1::Counter {
            preamble: Some(preamble),
            spec: counter_spec(program, object),
            size: size(&object.name, object.elements())?,
            ..Default::default()
        });
    }
    for (object, preamble) in all(program, elaborated, Object::Meter, ids::METER)? {
        info.meters.push(v1::Meter {
            preamble: Some(preamble),
            spec: meter_spec(program, object),
            size: size(&object.name, object.elements())?,
            ..Default::default()
        });
    }
    for (object, preamble) in all(program, elaborated, Object::DirectCounter, ids::DIRECT_COUNTER)?
    {
        let direct_table_id = attach(info, object, preamble.id);
        let spec = counter_spec(program, object);
        let direct = v1::DirectCounter { preamble: Some(preamble), spec, direct_table_id };
        info.direct_counters.push(direct);
    }
    for (object, preamble) in all(program, elaborated, Object::DirectMeter, ids::DIRECT_METER)? {
        let direct_table_id = attach(info, object, preamble.id);
        let spec = meter_spec(program, object);
        info.direct_meters.push(v1::DirectMeter {
            preamble: Some(preamble),
            spec,
            direct_table_id,
        });
    }
    Ok(())
}

/// Adds a direct resource to its table. Returns the table's id.
fn attach(info: &mut v1::P4Info, object: &PlacedObject, id: u32) -> u32 {
    let table = object.table.and_then(|at| info.tables.get_mut(at));
    let Some(table) = table else { return 0 };
    table.direct_resource_ids.push(id);
    table.preamble.as_ref().map_or(0, |preamble| preamble.id)
}

pub(crate) fn registers_and_digests(
    program: &Program,
    elaborated: &Elaborated,
    info: &mut v1::P4Info,
    types: &mut Types,
) -> Result<(), Error> {
    for (object, preamble) in all(program, elaborated, Object::Register, ids::REGISTER)? {
        info.registers.push(v1::Register {
            preamble: Some(preamble),
            type_spec: object.types.first().and_then(|of| type_spec(program, of, types)),
            size: size(&object.name, object.elements())?,
            ..Default::default()
        });
    }
    for (object, preamble) in all(program, elaborated, Object::Digest, ids::DIGEST)? {
        info.digests.push(v1::Digest {
            preamble: Some(preamble),
            type_spec: object.types.first().and_then(|of| type_spec(program, of, types)),
        });
    }
    Ok(())
}
