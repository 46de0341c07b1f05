//! Tests of valid and invalid updates, and of batches.

use crate::common::*;
use p4runtime::v1::entity::Entity;
use p4runtime::v1::update::Type;
use p4runtime::v1::write_request::Atomicity;
use p4runtime::v1::{self, P4Data, p4_data};
use p4runtime::{Count, Data, LARGEST_MESSAGE, Match};
use tonic::Code;

#[tokio::test]
async fn entries_come_to_the_device_as_they_are_meant() {
    let server = server().await;
    let mut primary = server.ready().await;
    let mut entry = all_kinds(1);
    // Leading zeros are ignored.
    entry.r#match[0] = exact(1, &[0, 0, 0, 1]);
    entry.metadata = b"mine".to_vec();
    primary.write(insert(entry)).await.unwrap();
    {
        let device = server.device();
        let found = device.state.entries.values().next().unwrap();
        let bits = |bits: &[u8]| -> p4runtime::Bits { bits.into() };
        let wanted = [
            Match::Exact(bits(&[0, 1])),
            Match::Lpm { value: bits(&[10, 0, 0, 0]), length: 8 },
            Match::Ternary { value: bits(&[1, 0]), mask: bits(&[1, 0xf0]) },
            Match::Range { low: bits(&[0, 5]), high: bits(&[1, 0]) },
            Match::Optional(Some(bits(&[6]))),
        ];
        assert_eq!((&*found.key.matches, found.key.priority), (&wanted[..], 10));
        assert_eq!(found.call.action, SET);
        assert_eq!(found.call.arguments, [bits(&[0, 1]), bits(&[0, 2])]);
    }
    // Omitted fields match any value.
    let mut entry = all_kinds(2);
    entry.r#match.truncate(1);
    primary.write(insert(entry)).await.unwrap();
    let device = server.device();
    let last = device.state.entries.keys().find(|(_, key)| {
        key.matches[1..]
            == [
                Match::Lpm { value: vec![0; 4].into(), length: 0 },
                Match::Ternary { value: vec![0; 2].into(), mask: vec![0; 2].into() },
                Match::Range { low: vec![0; 2].into(), high: vec![0x0f, 0xff].into() },
                Match::Optional(None),
            ]
    });
    assert!(last.is_some(), "{:?}", device.state.entries);
}

/// A modification of an entry, the expected status code, and a part of the message.
type Wrong = (fn(&mut v1::TableEntry), Code, &'static str);

#[tokio::test]
async fn entries_that_are_wrong_are_refused() {
    let server = server().await;
    let mut primary = server.ready().await;
    let wrong: &[Wrong] = &[
        (|one| one.table_id = 0x0200_0009, Code::InvalidArgument, "no table has the id"),
        (|one| one.table_id = ROUTE, Code::InvalidArgument, "takes a match of kind lpm"),
        (|one| one.table_id = NOTHING, Code::InvalidArgument, "has no match fields"),
        (|one| one.r#match[0] = exact(9, &[1]), Code::InvalidArgument, "no match field 9"),
        (|one| drop(one.r#match.remove(0)), Code::InvalidArgument, "`e` is missing"),
        (|one| one.r#match[1] = exact(1, &[1]), Code::InvalidArgument, "duplicate match field `e`"),
        (|one| one.r#match[0] = lpm(1, &[1], 8), Code::InvalidArgument, "kind exact"),
        (|one| one.r#match[4] = exact(5, &[1]), Code::InvalidArgument, "kind optional"),
        (|one| one.r#match[0].field_match_type = None, Code::InvalidArgument, "kind exact"),
        (|one| one.r#match[0] = exact(1, &[1, 0, 0]), Code::OutOfRange, "16 bits"),
        (|one| one.r#match[0] = exact(1, &[]), Code::OutOfRange, "`e`"),
        (|one| one.r#match[2] = ternary(3, &[4, 0], &[0xff]), Code::OutOfRange, "9 bits"),
        (
            |one| one.r#match[1] = lpm(2, &[10, 0, 0, 1], 8),
            Code::InvalidArgument,
            "bits are set beyond",
        ),
        (
            |one| one.r#match[1] = lpm(2, &[10, 0, 0, 1], 33),
            Code::InvalidArgument,
            "33 is outside 0 to 32",
        ),
        (|one| one.r#match[1] = lpm(2, &[0], -1), Code::InvalidArgument, "-1 is outside 0 to 32"),
        (|one| one.r#match[1] = lpm(2, &[0], 0), Code::InvalidArgument, "omit it"),
        (|one| one.r#match[2] = ternary(3, &[3], &[1]), Code::InvalidArgument, "outside the mask"),
        (|one| one.r#match[2] = ternary(3, &[0], &[0]), Code::InvalidArgument, "omit it"),
        (|one| one.r#match[3] = range(4, &[6], &[5]), Code::InvalidArgument, "ends before"),
        (|one| one.r#match[3] = range(4, &[0], &[15, 255]), Code::InvalidArgument, "omit it"),
        (|one| one.priority = 0, Code::InvalidArgument, "priority above 0"),
        (|one| one.priority = -1, Code::InvalidArgument, "priority above 0"),
        (|one| one.action = None, Code::InvalidArgument, "action is not set"),
        (|one| one.action = action(9, &[]), Code::InvalidArgument, "no action has the id"),
        (|one| one.action = action(NO_ACTION, &[]), Code::PermissionDenied, "default action only"),
        (|one| one.action = action(SET, &[(1, &[1])]), Code::InvalidArgument, "`e` is missing"),
        (
            |one| one.action = action(SET, &[(1, &[1]), (1, &[1]), (2, &[1])]),
            Code::InvalidArgument,
            "duplicate parameter `t`",
        ),
        (
            |one| one.action = action(SET, &[(1, &[1]), (2, &[1]), (3, &[1])]),
            Code::InvalidArgument,
            "no parameter 3",
        ),
        (
            |one| one.action = action(SET, &[(1, &[2, 0]), (2, &[1])]),
            Code::OutOfRange,
            "does not fit in 9 bits",
        ),
        (
            |one| {
                let member = v1::table_action::Type::ActionProfileMemberId(1);
                one.action = Some(v1::TableAction { r#type: Some(member) });
            },
            Code::Unimplemented,
            "action profiles",
        ),
        (|one| one.is_const = true, Code::InvalidArgument, "is_const"),
        (|one| one.idle_timeout_ns = 1, Code::InvalidArgument, "no idle timeouts"),
        (|one| one.time_since_last_hit = Some(Default::default()), Code::InvalidArgument, "idle"),
        (|one| one.meter_counter_data = Some(Default::default()), Code::Unimplemented, "colors"),
        (|one| one.is_default_action = true, Code::InvalidArgument, "no match fields"),
        (
            |one| one.counter_data = Some(v1::CounterData { byte_count: -1, packet_count: 0 }),
            Code::InvalidArgument,
            "negative",
        ),
        (
            |one| one.meter_config = Some(v1::MeterConfig { eburst: 1, ..Default::default() }),
            Code::InvalidArgument,
            "no excess burst",
        ),
    ];
    for (number, (change, code, text)) in wrong.iter().enumerate() {
        let mut entry = all_kinds(1);
        change(&mut entry);
        let (said, message) = primary.write(insert(entry)).await.unwrap_err();
        assert_eq!(said, *code, "{number}: {message}");
        assert!(message.contains(text), "{number}: {message}");
    }
    assert!(server.device().batches.is_empty(), "nothing of it came to the device");

    let with = |entry: v1::TableEntry| v1::TableEntry { priority: 1, ..entry };
    let (code, _) = primary.write(insert(with(route(1)))).await.unwrap_err();
    assert_eq!(code, Code::InvalidArgument, "a table of prefixes has no priorities");
    let mut entry = route(1);
    entry.counter_data = Some(v1::CounterData::default());
    let (code, message) = primary.write(insert(entry)).await.unwrap_err();
    assert_eq!(code, Code::InvalidArgument);
    assert!(message.contains("no direct counter"), "{message}");
    let update = v1::Update { r#type: 0, entity: Some(entity(Entity::TableEntry(route(1)))) };
    assert_eq!(primary.write(update).await.unwrap_err().0, Code::InvalidArgument);
    let update = v1::Update { r#type: Type::Insert.into(), entity: None };
    assert_eq!(primary.write(update).await.unwrap_err().0, Code::InvalidArgument);
}

#[tokio::test]
async fn entries_have_a_life() {
    let server = server().await;
    let mut primary = server.ready().await;
    let code = async |primary: &mut Controller, update| primary.write(update).await.unwrap_err().0;
    assert_eq!(code(&mut primary, modify(all_kinds(1))).await, Code::NotFound);
    assert_eq!(code(&mut primary, delete(all_kinds(1))).await, Code::NotFound);
    primary.write(insert(all_kinds(1))).await.unwrap();
    assert_eq!(code(&mut primary, insert(all_kinds(1))).await, Code::AlreadyExists);
    // The priority is part of the key.
    let other = v1::TableEntry { priority: 11, ..all_kinds(1) };
    primary.write(insert(other.clone())).await.unwrap();
    // An action with table-only scope.
    let changed = v1::TableEntry { action: action(COUNT, &[]), ..all_kinds(1) };
    primary.write(modify(changed)).await.unwrap();
    // Without an action, the old one is kept.
    primary.write(modify(v1::TableEntry { action: None, ..all_kinds(1) })).await.unwrap();
    let calls: Vec<u32> =
        server.device().state.entries.values().map(|entry| entry.call.action).collect();
    assert_eq!(calls, [COUNT, SET]);
    // A delete uses only the key.
    let nonsense = v1::TableEntry { action: action(77, &[]), idle_timeout_ns: 5, ..other };
    primary.write(delete(nonsense)).await.unwrap();
    assert_eq!(server.device().state.entries.len(), 1);

    for number in 2..=8 {
        primary.write(insert(all_kinds(number))).await.unwrap();
    }
    let (code, message) = primary.write(insert(all_kinds(9))).await.unwrap_err();
    assert_eq!(code, Code::ResourceExhausted);
    assert!(message.contains("8 entries"), "{message}");
    primary.write(delete(all_kinds(8))).await.unwrap();
    primary.write(insert(all_kinds(9))).await.unwrap();
    // The device may have less room than the tables.
    server.device().room = Some(8);
    let (code, message) = primary.write(insert(route(1))).await.unwrap_err();
    assert_eq!((code, &*message), (Code::ResourceExhausted, "no room: the device's memory"));
    server.device().room = None;
    primary.write(insert(route(1))).await.unwrap();
}

#[tokio::test]
async fn default_actions_are_modified_and_reset() {
    let server = server().await;
    let mut primary = server.ready().await;
    let default = |table_id, action| v1::TableEntry {
        table_id,
        action,
        is_default_action: true,
        ..Default::default()
    };
    primary.write(modify(default(ALL, set(1, 2)))).await.unwrap();
    assert_eq!(server.device().state.defaults[&ALL].as_ref().unwrap().action, SET);
    primary.write(modify(default(ALL, action(NO_ACTION, &[])))).await.unwrap();
    primary.write(modify(default(ALL, None))).await.unwrap();
    assert_eq!(server.device().state.defaults[&ALL], None, "what the program says");
    primary.write(modify(default(NOTHING, set(1, 2)))).await.unwrap();
    let mut refused = async |update| primary.write(update).await.unwrap_err();
    assert_eq!(refused(insert(default(ALL, set(1, 2)))).await.0, Code::InvalidArgument);
    assert_eq!(refused(delete(default(ALL, None))).await.0, Code::InvalidArgument);
    let scope = refused(modify(default(ALL, action(COUNT, &[])))).await;
    assert_eq!(scope.0, Code::PermissionDenied, "{scope:?}");
    assert!(scope.1.contains("for entries only"), "{scope:?}");
    let constant = refused(modify(default(FIXED, action(SET, &[(1, &[1]), (2, &[1])])))).await;
    assert_eq!(constant.0, Code::PermissionDenied, "{constant:?}");
    let entry = v1::TableEntry { priority: 1, ..default(ALL, set(1, 2)) };
    assert_eq!(refused(modify(entry)).await.0, Code::InvalidArgument);
    let fixed = v1::TableEntry {
        table_id: FIXED,
        r#match: vec![exact(1, &[7])],
        action: action(DROP, &[]),
        ..Default::default()
    };
    assert_eq!(refused(insert(fixed.clone())).await.0, Code::PermissionDenied);
    assert_eq!(refused(delete(fixed)).await.0, Code::PermissionDenied);
}

fn bits(bits: &[u8]) -> Option<P4Data> {
    Some(P4Data { data: Some(p4_data::Data::Bitstring(bits.to_vec())) })
}

#[tokio::test]
async fn cells_are_set_one_by_one_or_all_at_once() {
    let server = server().await;
    let mut primary = server.ready().await;
    let at = |index| Some(v1::Index { index });
    let counter = |index, packet_count| {
        let data = Some(v1::CounterData { packet_count, byte_count: 0 });
        update(
            Type::Modify,
            Entity::CounterEntry(v1::CounterEntry { counter_id: COUNTER, index, data }),
        )
    };
    primary.write(counter(None, 3)).await.unwrap();
    primary.write(counter(at(5), 4)).await.unwrap();
    let of = |packets| Count { packets, bytes: 0 };
    assert_eq!(server.device().state.counts[&(COUNTER, 5)], of(4));
    assert_eq!(server.device().state.counts[&(COUNTER, 15)], of(3));
    assert_eq!(primary.write(counter(at(16), 1)).await.unwrap_err().0, Code::OutOfRange);
    assert_eq!(primary.write(counter(at(-1), 1)).await.unwrap_err().0, Code::InvalidArgument);
    let mut other = counter(None, 1);
    other.r#type = Type::Insert.into();
    assert_eq!(primary.write(other).await.unwrap_err().0, Code::InvalidArgument);

    let register = |register_id, index, data| {
        let entry = v1::RegisterEntry { register_id, index, data };
        update(Type::Modify, Entity::RegisterEntry(entry))
    };
    primary.write(register(SEEN, at(1), bits(&[0x0f, 0xff]))).await.unwrap();
    primary.write(register(BALANCE, None, bits(&[0xff]))).await.unwrap();
    assert_eq!(
        server.device().state.registers[&(BALANCE, 1)],
        Data::Bits(vec![0x0f, 0xff].into()),
        "-1 in 12 bits"
    );
    let wide = primary.write(register(SEEN, at(1), bits(&[0x10, 0]))).await.unwrap_err();
    assert_eq!(wide.0, Code::OutOfRange);
    let is = Some(P4Data { data: Some(p4_data::Data::Bool(true)) });
    let other = primary.write(register(SEEN, at(1), is)).await.unwrap_err();
    assert_eq!(other, (Code::InvalidArgument, "`c.seen`: the value is not a valid bit<12>".into()));
    assert_eq!(
        primary.write(register(SEEN, at(1), None)).await.unwrap_err().0,
        Code::InvalidArgument
    );

    let set = |values: &[&[u8]]| {
        let member = |value: &&[u8]| v1::ValueSetMember { r#match: vec![exact(1, value)] };
        let members = values.iter().map(member).collect();
        let entry = v1::ValueSetEntry { value_set_id: KNOWN, members };
        update(Type::Modify, Entity::ValueSetEntry(entry))
    };
    primary.write(set(&[&[1], &[2]])).await.unwrap();
    assert_eq!(server.device().state.sets[&KNOWN], 2);
    assert_eq!(primary.write(set(&[&[1], &[0, 1]])).await.unwrap_err().0, Code::AlreadyExists);
    let many = primary.write(set(&[&[1], &[2], &[3], &[4], &[5]])).await.unwrap_err();
    assert_eq!(many.0, Code::ResourceExhausted);
    primary.write(set(&[])).await.unwrap();
    assert_eq!(server.device().state.sets[&KNOWN], 0);

    for (entity, name) in [
        (Entity::ActionProfileMember(Default::default()), "ActionProfileMember"),
        (Entity::ActionProfileGroup(Default::default()), "ActionProfileGroup"),
        (Entity::PacketReplicationEngineEntry(Default::default()), "PacketReplicationEngineEntry"),
        (Entity::ExternEntry(Default::default()), "ExternEntry"),
    ] {
        let (code, message) = primary.write(update(Type::Insert, entity)).await.unwrap_err();
        assert_eq!(code, Code::Unimplemented);
        assert!(message.contains(name) && message.ends_with("are not supported"), "{message}");
    }
}

#[tokio::test]
async fn direct_resources_belong_to_entries() {
    let server = server().await;
    let mut primary = server.ready().await;
    let mut entry = all_kinds(1);
    entry.counter_data = Some(v1::CounterData { byte_count: 10, packet_count: 1 });
    entry.meter_config = Some(v1::MeterConfig { cir: 1, cburst: 2, pir: 3, pburst: 4, eburst: 0 });
    primary.write(insert(entry.clone())).await.unwrap();
    let looks = |server: &Server| {
        let device = server.device();
        let count = device.state.direct_counts.values().next().copied();
        (count, device.state.direct_meters.values().next().copied().unwrap().map(|one| one.pir))
    };
    let first = Some(Count { packets: 1, bytes: 10 });
    assert_eq!(looks(&server), (first, Some(3)));
    // Omitted direct resources: the counter is kept, and the meter is reset.
    primary.write(modify(all_kinds(1))).await.unwrap();
    assert_eq!(looks(&server), (first, None));

    let counter = |table_entry| {
        let data = Some(v1::CounterData { byte_count: 7, packet_count: 7 });
        let entry = v1::DirectCounterEntry { table_entry, data };
        update(Type::Modify, Entity::DirectCounterEntry(entry))
    };
    primary.write(counter(Some(all_kinds(1)))).await.unwrap();
    assert_eq!(looks(&server).0, Some(Count { packets: 7, bytes: 7 }));
    let missing = primary.write(counter(Some(all_kinds(2)))).await.unwrap_err();
    assert_eq!(missing.0, Code::NotFound);
    assert_eq!(primary.write(counter(None)).await.unwrap_err().0, Code::InvalidArgument);
    primary.write(insert(route(1))).await.unwrap();
    let none = primary.write(counter(Some(route(1)))).await.unwrap_err();
    assert_eq!(none.0, Code::InvalidArgument, "{none:?}");
    let meter = v1::DirectMeterEntry {
        table_entry: Some(all_kinds(1)),
        config: entry.meter_config,
        counter_data: None,
    };
    primary.write(update(Type::Modify, Entity::DirectMeterEntry(meter))).await.unwrap();
    assert_eq!(looks(&server).1, Some(3));
}

#[tokio::test]
async fn batches_go_on_or_are_taken_back() {
    let server = server().await;
    let mut primary = server.ready().await;
    let batch = || {
        vec![
            insert(route(1)),
            insert(route(1)),
            modify(v1::TableEntry { action: set(1, 2), ..route(1) }),
            delete(route(9)),
            insert(all_kinds(1)),
        ]
    };
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let status = primary.write_all(batch(), atomicity).await.unwrap_err();
        let wanted =
            [Code::Aborted, Code::AlreadyExists, Code::Aborted, Code::NotFound, Code::Aborted];
        assert_eq!(codes(&status), wanted);
        assert!(server.device().batches.is_empty(), "the device heard nothing");
        assert_eq!(
            primary.read(vec![entity(Entity::TableEntry(Default::default()))]).await.unwrap(),
            []
        );
    }
    let status = primary.write_all(batch(), Atomicity::ContinueOnError).await.unwrap_err();
    let wanted = [Code::Ok, Code::AlreadyExists, Code::Ok, Code::NotFound, Code::Ok];
    assert_eq!(codes(&status), wanted);
    assert!(status.message().starts_with("2 of 5 failed; number 1: "), "{status:?}");
    assert_eq!(server.device().state.entries.len(), 2);

    // The device rejects a change in the middle of the batch.
    server.device().room = Some(3);
    let batch = || vec![insert(route(2)), insert(route(3)), insert(route(4)), delete(route(1))];
    let status = primary.write_all(batch(), Atomicity::DataplaneAtomic).await.unwrap_err();
    let wanted = [Code::Aborted, Code::ResourceExhausted, Code::Aborted, Code::Aborted];
    assert_eq!(codes(&status), wanted);
    assert_eq!(server.device().state.entries.len(), 2);
    let status = primary.write_all(batch(), Atomicity::ContinueOnError).await.unwrap_err();
    let wanted = [Code::Ok, Code::ResourceExhausted, Code::ResourceExhausted, Code::Ok];
    assert_eq!(codes(&status), wanted);
    // The store equals the device's state: otherwise the device would panic.
    server.device().room = None;
    let all = vec![insert(route(3)), insert(route(4)), insert(route(1)), delete(route(2))];
    primary.write_all(all, Atomicity::DataplaneAtomic).await.unwrap();
    assert_eq!(server.device().state.entries.len(), 4);
    // An entry may be inserted and deleted in one batch.
    let all = vec![delete(route(1)), insert(route(1)), delete(route(1))];
    primary.write_all(all, Atomicity::RollbackOnError).await.unwrap();
    assert_eq!(server.device().state.entries.len(), 3);
    let again = vec![delete(route(3)), insert(route(3)), insert(route(3))];
    let status = primary.write_all(again, Atomicity::RollbackOnError).await.unwrap_err();
    assert_eq!(codes(&status), [Code::Aborted, Code::Aborted, Code::AlreadyExists]);
    assert!(status.message().starts_with("3 of 3 failed; number 2: table "), "{status:?}");
    primary.write(modify(route(3))).await.unwrap();
}

/// An update is not validated against a change that the device rejects.
#[tokio::test]
async fn a_refused_update_is_absent_for_the_rest_of_the_batch() {
    let server = server().await;
    let mut primary = server.ready().await;
    server.device().room = Some(0);
    let all = vec![insert(route(1)), modify(route(1)), delete(route(1)), insert(route(1))];
    let status = primary.write_all(all, Atomicity::ContinueOnError).await.unwrap_err();
    let wanted = [Code::ResourceExhausted, Code::NotFound, Code::NotFound, Code::ResourceExhausted];
    assert_eq!(codes(&status), wanted);
}

#[tokio::test]
async fn large_batches_have_bounds() {
    let server = server().await;
    let mut primary = server.ready().await;
    let all: Vec<_> = (0..100_000).map(|number| insert(route(number))).collect();
    primary.write_all(all.clone(), Atomicity::DataplaneAtomic).await.unwrap();
    assert_eq!(server.device().batches, [100_000], "one batch");
    let asked = v1::TableEntry { table_id: ROUTE, ..Default::default() };
    let read = primary.read(vec![entity(Entity::TableEntry(asked))]).await.unwrap();
    assert_eq!(read.len(), 100_000, "in messages that a client takes");

    // The errors of 100,000 updates exceed a response.
    let status = primary.write_all(all, Atomicity::ContinueOnError).await.unwrap_err();
    assert!(status.message().starts_with("100000 of 100000 failed; number 0: "), "{status:?}");
    assert!(status.message().contains("no more fit an answer"), "{status:?}");
    let told = errors(&status);
    assert!(!told.is_empty() && told.iter().all(|one| one.canonical_code == 6), "{}", told.len());
    assert!(status.details().len() < 6 * 1024, "{}", status.details().len());

    let program = v1::ForwardingPipelineConfig {
        p4_device_config: vec![0; LARGEST_MESSAGE],
        ..config(kinds())
    };
    let action = v1::set_forwarding_pipeline_config_request::Action::VerifyAndCommit;
    let status = primary.set(action, Some(program)).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    assert_eq!(server.device().state.entries.len(), 100_000, "nothing has changed");
}
