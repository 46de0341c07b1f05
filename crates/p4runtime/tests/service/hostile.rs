//! Tests with malformed messages: each gets a response, the device (which would panic) receives no
//! invalid change, and the service's state stays equal to the device's.

use crate::common::*;
use p4runtime::v1::entity::Entity;
use p4runtime::v1::field_match::{self, FieldMatchType};
use p4runtime::v1::set_forwarding_pipeline_config_request::Action;
use p4runtime::v1::{self, p4_data};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use prost::Message;
use tonic::{Code, Status};

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0), Just(1), Just(0xff), any::<u8>()], 0..5)
}

fn ids() -> impl Strategy<Value = u32> {
    let known = [
        ALL, ROUTE, NOTHING, FIXED, SET, DROP, COUNT, NO_ACTION, COUNTER, METER, DIGEST, SEEN,
        BALANCE, KNOWN, 0,
    ];
    prop_oneof![9 => prop::sample::select(known.to_vec()), 1 => any::<u32>()]
}

fn matches() -> impl Strategy<Value = Vec<v1::FieldMatch>> {
    let of = (0..6_u32, 0..6_u8, bytes(), bytes(), -1..34_i32);
    let one = of.prop_map(|(field_id, kind, value, other, prefix_len)| {
        // Mostly the match kind of the field.
        let kind = if kind == 5 { (field_id % 5) as u8 } else { field_id.saturating_sub(1) as u8 };
        let matched = match kind {
            0 => FieldMatchType::Exact(field_match::Exact { value }),
            1 => FieldMatchType::Lpm(field_match::Lpm { value, prefix_len }),
            2 => FieldMatchType::Ternary(field_match::Ternary { value, mask: other }),
            3 => FieldMatchType::Range(field_match::Range { low: value, high: other }),
            _ => FieldMatchType::Optional(field_match::Optional { value }),
        };
        v1::FieldMatch { field_id, field_match_type: Some(matched) }
    });
    vec(one, 0..4)
}

fn table_entries() -> impl Strategy<Value = v1::TableEntry> {
    let called = option::of((ids(), vec((0..4_u32, bytes()), 0..3)));
    let direct = (option::of(-1..5_i64), option::of(-1..5_i64));
    let of = (ids(), matches(), called, -1..3_i32, direct, prop::bool::weighted(0.2));
    let entry = of.prop_map(|(table_id, r#match, called, priority, direct, is_default_action)| {
        let action = called.and_then(|(id, params)| {
            let params: Vec<(u32, &[u8])> =
                params.iter().map(|(id, value)| (*id, &**value)).collect();
            action(id, &params)
        });
        let counter = |count| v1::CounterData { byte_count: count, packet_count: count };
        let meter = |cir| v1::MeterConfig { cir, ..Default::default() };
        v1::TableEntry {
            table_id,
            r#match,
            action,
            priority,
            counter_data: direct.0.map(counter),
            meter_config: direct.1.map(meter),
            is_default_action,
            ..Default::default()
        }
    });
    let right = (1..4_u8, 1..3_i32)
        .prop_map(|(number, priority)| v1::TableEntry { priority, ..all_kinds(number) });
    prop_oneof![1 => entry, 2 => right, 1 => (0..5_u32).prop_map(route)]
}

fn indexes() -> impl Strategy<Value = Option<v1::Index>> {
    option::of((-1..17_i64).prop_map(|index| v1::Index { index }))
}

fn values() -> impl Strategy<Value = Option<v1::P4Data>> {
    let leaf = prop_oneof![
        4 => bytes().prop_map(p4_data::Data::Bitstring),
        1 => any::<bool>().prop_map(p4_data::Data::Bool),
        1 => Just(p4_data::Data::Header(Default::default())),
    ];
    option::of(leaf.prop_map(|data| v1::P4Data { data: Some(data) }))
}

fn entities() -> impl Strategy<Value = v1::Entity> {
    let cell = || (ids(), indexes(), option::of(-1..9_i64));
    let one = prop_oneof![
        6 => table_entries().prop_map(Entity::TableEntry),
        1 => cell().prop_map(|(counter_id, index, count)| {
            let data = count.map(|count| v1::CounterData { byte_count: 1, packet_count: count });
            Entity::CounterEntry(v1::CounterEntry { counter_id, index, data })
        }),
        1 => cell().prop_map(|(meter_id, index, cir)| {
            let config = cir.map(|cir| v1::MeterConfig { cir, ..Default::default() });
            Entity::MeterEntry(v1::MeterEntry { meter_id, index, config, counter_data: None })
        }),
        1 => (ids(), indexes(), values()).prop_map(|(register_id, index, data)| {
            Entity::RegisterEntry(v1::RegisterEntry { register_id, index, data })
        }),
        1 => (ids(), vec(matches(), 0..6)).prop_map(|(value_set_id, members)| {
            let members = members.into_iter().map(|r#match| v1::ValueSetMember { r#match });
            let members = members.collect();
            Entity::ValueSetEntry(v1::ValueSetEntry { value_set_id, members })
        }),
        1 => option::of(table_entries()).prop_map(|table_entry| {
            let data = Some(v1::CounterData::default());
            Entity::DirectCounterEntry(v1::DirectCounterEntry { table_entry, data })
        }),
        1 => option::of(table_entries()).prop_map(|table_entry| {
            Entity::DirectMeterEntry(v1::DirectMeterEntry { table_entry, ..Default::default() })
        }),
        1 => (ids(), option::of(-1..3_i64)).prop_map(|(digest_id, time)| {
            let config = |ns| v1::digest_entry::Config { max_timeout_ns: ns, ..Default::default() };
            Entity::DigestEntry(v1::DigestEntry { digest_id, config: time.map(config) })
        }),
        1 => Just(Entity::ExternEntry(v1::ExternEntry::default())),
    ];
    option::weighted(0.98, one).prop_map(|entity| v1::Entity { entity })
}

fn batches() -> impl Strategy<Value = (Vec<v1::Update>, i32)> {
    let kind = prop_oneof![9 => 1..4_i32, 1 => any::<i32>()];
    let one = (kind, option::weighted(0.98, entities()))
        .prop_map(|(r#type, entity)| v1::Update { r#type, entity });
    (vec(one, 0..12), prop_oneof![4 => Just(0), 2 => 1..3_i32, 1 => any::<i32>()])
}

/// Valid status codes for a malformed request.
fn is_an_answer(status: &Status) -> bool {
    matches!(status.code(), Code::Unknown | Code::InvalidArgument)
}

#[test]
fn every_write_and_read_is_answered() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(server());
    let primary = std::cell::RefCell::new(runtime.block_on(server.ready()));
    let done = std::cell::Cell::new(0);
    let config = ProptestConfig { cases: 1500, failure_persistence: None, ..Default::default() };
    proptest!(config, |((updates, atomicity) in batches(), asked in vec(entities(), 0..4), room in 0..12_usize)| {
        // Sometimes the device has less room than the table sizes.
        server.device().room = Some(room).filter(|room| *room < 6);
        let mut primary = primary.borrow_mut();
        runtime.block_on(async {
            let request = v1::WriteRequest {
                device_id: DEVICE,
                election_id: primary.election,
                updates: updates.clone(),
                atomicity,
                ..Default::default()
            };
            match primary.client.write(request).await {
                Ok(_) => done.set(done.get() + updates.len()),
                Err(status) => {
                    assert!(is_an_answer(&status), "{status:?}");
                    if status.code() == Code::Unknown {
                        let told = codes(&status);
                        assert_eq!(told.len(), updates.len());
                        let well = told.iter().filter(|code| **code == Code::Ok).count();
                        done.set(done.get() + well);
                    }
                }
            }
            if let Err(status) = primary.read(asked).await {
                assert!(is_an_answer(&status), "{status:?}");
            }
            let all = primary.read(vec![entity(Entity::TableEntry(Default::default()))]).await;
            assert_eq!(all.unwrap().len(), server.device().state.entries.len());
        });
    });
    assert!(done.get() > 200, "{} updates went well", done.get());
}

/// Encoded messages with modified bytes; all that decode get a response.
#[test]
fn damaged_messages_are_answered() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(server());
    let primary = std::cell::RefCell::new(runtime.block_on(server.ready()));
    let info = kinds().encode_to_vec();
    let write = {
        let updates = vec![insert(all_kinds(1)), modify(all_kinds(1)), insert(route(1))];
        v1::WriteRequest { updates, ..Default::default() }.encode_to_vec()
    };
    let damage = |message: &[u8], places: &[(usize, u8)]| {
        let mut message = message.to_vec();
        for (place, to) in places {
            let at = place % message.len();
            message[at] = *to;
        }
        message
    };
    let read = std::cell::Cell::new(0);
    let config = ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() };
    proptest!(config, |(places in vec((any::<usize>(), any::<u8>()), 1..4))| {
        let mut primary = primary.borrow_mut();
        runtime.block_on(async {
            if let Ok(info) = p4info::v1::P4Info::decode(&*damage(&info, &places)) {
                read.set(read.get() + 1);
                if let Err(status) = primary.set(Action::Verify, Some(crate::common::config(info))).await {
                    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
                }
            }
            if let Ok(request) = v1::WriteRequest::decode(&*damage(&write, &places)) {
                let request = v1::WriteRequest {
                    device_id: DEVICE,
                    election_id: primary.election,
                    role: String::new(),
                    ..request
                };
                if let Err(status) = primary.client.write(request).await {
                    assert!(is_an_answer(&status) || status.code() == Code::NotFound, "{status:?}");
                }
            }
        });
    });
    assert!(read.get() > 200, "{} could be read", read.get());
    let mut primary = primary.into_inner();
    let all = vec![entity(Entity::TableEntry(Default::default()))];
    let all = runtime.block_on(primary.read(all));
    assert_eq!(all.unwrap().len(), server.device().state.entries.len());
}
