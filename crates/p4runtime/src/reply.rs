//! Converts results and errors to messages.

use prost::Message;
use tonic::{Code, Status};

use crate::data;
use crate::device::{Call, Count, Key, Meter, Target};
use crate::error::{Error, truncated};
use crate::found::Found;
use crate::matches;
use crate::pipeline::Pipeline;
use crate::rpc;
use crate::v1::{self, entity, table_action};
use crate::values;

/// Value of `space` in errors.
const SPACE: &str = "kaido";

/// Maximum size of a status's error details, in bytes. gRPC sends them in a trailer,
/// base64-encoded, and clients accept trailers of 8 KiB.
const MAX_DETAILS: usize = 4608;

/// Maximum length of an error message.
const MAX_TEXT: usize = 400;

/// Converts an entity to a message.
pub(crate) fn entity(pipeline: &Pipeline, found: &Found) -> v1::Entity {
    use entity::Entity;
    let index = |at: u64| Some(v1::Index { index: at as i64 });
    let entity = match found {
        Found::Row { table, key, row, count, meter } => {
            let mut entry = keyed(pipeline, *table, key);
            entry.action = Some(action(pipeline, &row.call));
            entry.meter_config = row.meter.filter(|_| *meter).map(config);
            entry.counter_data = count.map(counted);
            entry.metadata.clone_from(&row.metadata);
            entry.is_const = row.constant;
            set_cookie(&mut entry, row.cookie);
            Entity::TableEntry(entry)
        }
        Found::Default { table, row, count, meter } => {
            let of = pipeline.tables.get(table);
            let mut entry = v1::TableEntry {
                table_id: *table,
                is_default_action: true,
                action: row.call.as_ref().map(|call| action(pipeline, call)),
                meter_config: row.meter.filter(|_| *meter).map(config),
                counter_data: count.map(counted),
                metadata: row.metadata.clone(),
                is_const: of.is_some_and(|table| table.constant_default.is_some()),
                ..v1::TableEntry::default()
            };
            set_cookie(&mut entry, row.cookie);
            Entity::TableEntry(entry)
        }
        Found::DirectCounter { table, of, count } => {
            Entity::DirectCounterEntry(v1::DirectCounterEntry {
                table_entry: Some(targeted(pipeline, *table, of)),
                data: Some(counted(*count)),
            })
        }
        Found::DirectMeter { table, of, meter } => Entity::DirectMeterEntry(v1::DirectMeterEntry {
            table_entry: Some(targeted(pipeline, *table, of)),
            config: meter.map(config),
            counter_data: None,
        }),
        Found::Counter { id, at, count } => Entity::CounterEntry(v1::CounterEntry {
            counter_id: *id,
            index: index(*at),
            data: Some(counted(*count)),
        }),
        Found::Meter { id, at, meter } => Entity::MeterEntry(v1::MeterEntry {
            meter_id: *id,
            index: index(*at),
            config: meter.map(config),
            counter_data: None,
        }),
        Found::Register { id, at, data } => Entity::RegisterEntry(v1::RegisterEntry {
            register_id: *id,
            index: index(*at),
            data: pipeline.registers.get(id).map(|of| data::to_message(data, &of.of)),
        }),
        Found::ValueSet { id, members } => {
            let fields = pipeline.value_sets.get(id).map_or(&[][..], |set| &set.fields);
            let member =
                |one: &Vec<_>| v1::ValueSetMember { r#match: matches::to_messages(fields, one) };
            Entity::ValueSetEntry(v1::ValueSetEntry {
                value_set_id: *id,
                members: members.iter().map(member).collect(),
            })
        }
        Found::Digest { id, config } => {
            Entity::DigestEntry(v1::DigestEntry { digest_id: *id, config: Some(*config) })
        }
    };
    v1::Entity { entity: Some(entity) }
}

fn keyed(pipeline: &Pipeline, table: u32, key: &Key) -> v1::TableEntry {
    let fields = pipeline.tables.get(&table).map_or(&[][..], |table| &table.fields);
    v1::TableEntry {
        table_id: table,
        r#match: matches::to_messages(fields, &key.matches),
        priority: key.priority,
        ..v1::TableEntry::default()
    }
}

fn targeted(pipeline: &Pipeline, table: u32, of: &Target) -> v1::TableEntry {
    match of {
        Target::Entry(key) => keyed(pipeline, table, key),
        Target::Default => {
            v1::TableEntry { table_id: table, is_default_action: true, ..Default::default() }
        }
    }
}

#[expect(deprecated, reason = "clients still use it")]
fn set_cookie(entry: &mut v1::TableEntry, cookie: u64) {
    entry.controller_metadata = cookie;
}

fn action(pipeline: &Pipeline, call: &Call) -> v1::TableAction {
    let params = pipeline.actions.get(&call.action).map_or(&[][..], |action| &action.params);
    let param = |(param, value): (&crate::pipeline::Param, &values::Bits)| v1::action::Param {
        param_id: param.id,
        value: values::shortest(value),
    };
    let params = params.iter().zip(&call.arguments).map(param).collect();
    let action = v1::Action { action_id: call.action, params };
    v1::TableAction { r#type: Some(table_action::Type::Action(action)) }
}

fn counted(count: Count) -> v1::CounterData {
    v1::CounterData { byte_count: signed(count.bytes), packet_count: signed(count.packets) }
}

fn config(meter: Meter) -> v1::MeterConfig {
    v1::MeterConfig {
        cir: signed(meter.cir),
        cburst: signed(meter.cburst),
        pir: signed(meter.pir),
        pburst: signed(meter.pburst),
        eburst: signed(meter.eburst),
    }
}

/// The specification uses signed integers; ours are unsigned.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

// ---- errors ----

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Self::new(error.code(), text(&error))
    }
}

/// Text of an error, truncated.
pub(crate) fn text(error: &Error) -> String {
    truncated(&error.to_string(), MAX_TEXT)
}

fn message(answer: &Result<(), Error>) -> v1::Error {
    match answer {
        Ok(()) => v1::Error::default(),
        Err(error) => v1::Error {
            canonical_code: error.code() as i32,
            message: text(error),
            space: SPACE.into(),
            ..v1::Error::default()
        },
    }
}

/// Status of a batch: success, or one error for each update ("Error Reporting"). If the errors
/// exceed a trailer, the list is truncated, and the text says so.
pub(crate) fn batch(answers: &[Result<(), Error>]) -> Result<(), Status> {
    let errors = answers.iter().enumerate();
    let failed = errors.filter_map(|(at, answer)| Some((at, answer.as_ref().err()?)));
    // Aborted updates do not state the cause.
    let mut causes = failed.clone().filter(|(_, error)| error.code() != Code::Aborted);
    let cause = causes.next().or_else(|| failed.clone().next());
    let Some((first, error)) = cause else { return Ok(()) };
    let count = failed.count();
    let mut status = rpc::Status { code: Code::Unknown as i32, ..rpc::Status::default() };
    let mut bytes = 0;
    for answer in answers {
        let detail = prost_types::Any {
            type_url: "type.googleapis.com/p4.v1.Error".into(),
            value: message(answer).encode_to_vec(),
        };
        // The detail itself, and its tag and length.
        bytes += detail.encoded_len() + 4;
        if bytes > MAX_DETAILS {
            break;
        }
        status.details.push(detail);
    }
    let (all, included) = (answers.len(), status.details.len());
    status.message = format!("{count} of {all} failed; number {first}: {}", text(error));
    if included < all {
        status.message +=
            &format!(" (details of the first {included}, since no more fit an answer)");
    }
    let details = status.encode_to_vec();
    Err(Status::with_details(Code::Unknown, status.message, details.into()))
}
