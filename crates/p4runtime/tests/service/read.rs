//! Tests of read requests.

use crate::common::*;
use p4info::v1 as info;
use p4runtime::v1::entity::Entity;
use p4runtime::v1::set_forwarding_pipeline_config_request::Action;
use p4runtime::v1::{self, p4_data};
use p4runtime::{Count, Data};
use tonic::Code;

fn asked(entry: v1::TableEntry) -> v1::Entity {
    entity(Entity::TableEntry(entry))
}

async fn table_entries(primary: &mut Controller, entry: v1::TableEntry) -> Vec<v1::TableEntry> {
    let of = |entity: v1::Entity| match entity.entity {
        Some(Entity::TableEntry(entry)) => entry,
        other => panic!("{other:?}"),
    };
    primary.read(vec![asked(entry)]).await.unwrap().into_iter().map(of).collect()
}

#[tokio::test]
async fn written_entries_are_read_back() {
    let server = server().await;
    let mut primary = server.ready().await;
    let metadata = b"mine".to_vec();
    let whole = v1::TableEntry { metadata, ..all_kinds(1) };
    let mut open = all_kinds(2);
    open.r#match.truncate(1);
    for entry in [&whole, &open] {
        primary.write(insert(entry.clone())).await.unwrap();
    }
    let everything = v1::TableEntry::default();
    assert_eq!(table_entries(&mut primary, everything).await, [whole, open]);
}

#[tokio::test]
async fn entries_are_selected_by_their_fields() {
    let server = server().await;
    let mut primary = server.ready().await;
    for number in 1..=3 {
        let metadata = vec![number / 2];
        let priority = i32::from(number);
        let entry = v1::TableEntry { metadata, priority, ..all_kinds(1) };
        primary.write(insert(entry)).await.unwrap();
    }
    let dropped = v1::TableEntry { action: action(DROP, &[]), ..all_kinds(2) };
    primary.write(insert(dropped)).await.unwrap();
    primary.write(insert(route(1))).await.unwrap();
    let of = |entry| v1::TableEntry { table_id: ALL, ..entry };
    let nothing = v1::TableEntry::default;
    let mut count = async |entry| table_entries(&mut primary, entry).await.len();
    assert_eq!(count(nothing()).await, 5, "all tables");
    assert_eq!(count(of(nothing())).await, 4);
    assert_eq!(count(of(v1::TableEntry { priority: 2, ..nothing() })).await, 1);
    let key = v1::TableEntry { r#match: all_kinds(1).r#match, ..nothing() };
    assert_eq!(count(of(key.clone())).await, 3, "of every priority");
    assert_eq!(count(of(v1::TableEntry { priority: 3, ..key.clone() })).await, 1);
    assert_eq!(count(of(v1::TableEntry { priority: 4, ..key })).await, 0);
    let action = |id| v1::TableEntry { action: action(id, &[]), ..nothing() };
    assert_eq!((count(of(action(DROP))).await, count(of(action(SET))).await), (1, 3));
    assert_eq!(count(of(v1::TableEntry { metadata: vec![1], ..nothing() })).await, 2);
    let default = v1::TableEntry { is_default_action: true, ..nothing() };
    assert_eq!(count(default).await, 4, "of all tables");

    for (entry, code) in [
        (v1::TableEntry { priority: 2, ..nothing() }, Code::InvalidArgument),
        (v1::TableEntry { table_id: 9, ..nothing() }, Code::InvalidArgument),
        (of(v1::TableEntry { r#match: vec![exact(9, &[1])], ..nothing() }), Code::InvalidArgument),
        (of(v1::TableEntry { idle_timeout_ns: 1, ..nothing() }), Code::InvalidArgument),
    ] {
        let status = primary.read(vec![asked(entry)]).await.unwrap_err();
        assert_eq!(codes(&status), [code], "{status:?}");
    }
}

#[tokio::test]
async fn counters_and_meters_come_along_if_they_are_asked_for() {
    let server = server().await;
    let mut primary = server.ready().await;
    let meter = v1::MeterConfig { cir: 1, cburst: 2, pir: 3, pburst: 4, eburst: 0 };
    let metered = v1::TableEntry { meter_config: Some(meter), ..all_kinds(1) };
    primary.write(insert(metered)).await.unwrap();
    primary.write(insert(all_kinds(2))).await.unwrap();
    for (number, count) in server.device().state.direct_counts.values_mut().enumerate() {
        *count = Count { packets: number as u64, bytes: 1 << 63 };
    }
    let keys: Vec<_> = server.device().state.entries.keys().cloned().collect();
    for (number, (table, key)) in keys.into_iter().enumerate() {
        let count = Count { packets: number as u64 + 1, bytes: u64::MAX };
        server.device().state.direct_counts.insert((table, Some(key)), count);
    }
    let with = v1::TableEntry {
        table_id: ALL,
        counter_data: Some(Default::default()),
        meter_config: Some(Default::default()),
        ..Default::default()
    };
    let both = table_entries(&mut primary, with).await;
    let counts: Vec<_> = both.iter().map(|one| one.counter_data.unwrap()).collect();
    assert_eq!((counts[0].packet_count, counts[1].packet_count), (1, 2));
    assert_eq!(counts[0].byte_count, i64::MAX, "a number too large for the message");
    let meters: Vec<_> = both.iter().map(|one| one.meter_config).collect();
    assert_eq!(meters, [Some(meter), None], "none is green");
    let without = v1::TableEntry { table_id: ALL, ..Default::default() };
    let both = table_entries(&mut primary, without).await;
    assert!(both.iter().all(|one| one.counter_data.is_none() && one.meter_config.is_none()));

    let direct = |table_entry| {
        entity(Entity::DirectCounterEntry(v1::DirectCounterEntry { table_entry, data: None }))
    };
    let of = |table_id| Some(v1::TableEntry { table_id, ..Default::default() });
    assert_eq!(primary.read(vec![direct(of(0))]).await.unwrap().len(), 2);
    assert_eq!(primary.read(vec![direct(of(ALL))]).await.unwrap().len(), 2);
    let one = primary.read(vec![direct(Some(all_kinds(2)))]).await.unwrap();
    let [v1::Entity { entity: Some(Entity::DirectCounterEntry(one)) }] = &one[..] else {
        panic!("{one:?}")
    };
    assert_eq!(one.data.unwrap().packet_count, 2);
    assert_eq!(one.table_entry.as_ref().unwrap().r#match, all_kinds(2).r#match);
    let meters = |table_entry| {
        let entry = v1::DirectMeterEntry { table_entry, ..Default::default() };
        entity(Entity::DirectMeterEntry(entry))
    };
    assert_eq!(primary.read(vec![meters(of(0))]).await.unwrap().len(), 2);

    // Each entity has its own result: valid ones succeed.
    let parts = vec![direct(Some(all_kinds(3))), direct(of(ROUTE)), direct(None), direct(of(ALL))];
    let request = v1::ReadRequest { device_id: DEVICE, entities: parts, ..Default::default() };
    let mut stream = primary.client.read(request).await.unwrap().into_inner();
    assert_eq!(stream.message().await.unwrap().unwrap().entities.len(), 2);
    let status = stream.message().await.unwrap_err();
    let wanted = [Code::NotFound, Code::InvalidArgument, Code::InvalidArgument, Code::Ok];
    assert_eq!(codes(&status), wanted);
}

#[tokio::test]
async fn cells_are_read_one_by_one_or_all_at_once() {
    let server = server().await;
    let mut primary = server.ready().await;
    server.device().state.counts.insert((COUNTER, 2), Count { packets: 3, bytes: 4 });
    let at = |index| Some(v1::Index { index });
    let counter = |counter_id, index| {
        entity(Entity::CounterEntry(v1::CounterEntry { counter_id, index, data: None }))
    };
    let one = primary.read(vec![counter(COUNTER, at(2))]).await.unwrap();
    let data = Some(v1::CounterData { byte_count: 4, packet_count: 3 });
    let wanted = v1::CounterEntry { counter_id: COUNTER, index: at(2), data };
    assert_eq!(one, [entity(Entity::CounterEntry(wanted))]);
    assert_eq!(primary.read(vec![counter(COUNTER, None)]).await.unwrap().len(), 16);
    assert_eq!(primary.read(vec![counter(0, None)]).await.unwrap().len(), 16);
    for (bad, code) in [
        (counter(COUNTER, at(16)), Code::OutOfRange),
        (counter(COUNTER, at(-1)), Code::InvalidArgument),
        (counter(0, at(1)), Code::InvalidArgument),
        (counter(7, None), Code::InvalidArgument),
        (v1::Entity { entity: None }, Code::InvalidArgument),
        (entity(Entity::ActionProfileMember(Default::default())), Code::Unimplemented),
        (entity(Entity::ExternEntry(Default::default())), Code::Unimplemented),
    ] {
        let status = primary.read(vec![bad]).await.unwrap_err();
        assert_eq!(codes(&status), [code], "{status:?}");
    }
    let meters = entity(Entity::MeterEntry(v1::MeterEntry::default()));
    assert_eq!(primary.read(vec![meters]).await.unwrap().len(), 4);

    let balance = Data::Bits(vec![0x0f, 0xff].into());
    server.device().state.registers.insert((BALANCE, 0), balance);
    let register = |register_id, index| {
        let entry = v1::RegisterEntry { register_id, index, data: None };
        entity(Entity::RegisterEntry(entry))
    };
    let read = primary.read(vec![register(BALANCE, None)]).await.unwrap();
    let values: Vec<_> = read
        .into_iter()
        .map(|entity| match entity.entity {
            Some(Entity::RegisterEntry(entry)) => match entry.data.unwrap().data.unwrap() {
                p4_data::Data::Bitstring(bits) => bits,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(values, [vec![0xff], vec![0]], "-1 in as few bytes as it takes");
    assert_eq!(primary.read(vec![register(0, None)]).await.unwrap().len(), 10);

    let sets = entity(Entity::ValueSetEntry(v1::ValueSetEntry::default()));
    let empty = v1::ValueSetEntry { value_set_id: KNOWN, members: Vec::new() };
    assert_eq!(primary.read(vec![sets]).await.unwrap(), [entity(Entity::ValueSetEntry(empty))]);
}

/// A reader that stops after one message does not block other clients.
#[tokio::test]
async fn a_slow_reader_does_not_block_other_clients() {
    let server = server().await;
    let mut primary = server.ready().await;
    let all = (0..100_000).map(|number| insert(route(number))).collect();
    primary.write_all(all, Default::default()).await.unwrap();
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut client = server.client().await;
        let request = v1::ReadRequest {
            device_id: DEVICE,
            entities: vec![asked(v1::TableEntry::default())],
            ..Default::default()
        };
        let mut stream = client.read(request).await.unwrap().into_inner();
        stream.message().await.unwrap().unwrap();
        slow.push(stream);
    }
    primary.write(delete(route(0))).await.unwrap();
    primary.write(insert(all_kinds(1))).await.unwrap();
    let first = &mut slow[0];
    let mut count = 4096;
    while let Some(more) = first.message().await.unwrap() {
        count += more.entities.len();
    }
    assert_eq!(count, 100_000, "what was there when it was asked for");
}

#[tokio::test]
async fn the_version_is_reported() {
    let server = server().await;
    let answer = server.client().await.capabilities(v1::CapabilitiesRequest::default()).await;
    assert_eq!(answer.unwrap().into_inner().p4runtime_api_version, p4runtime::VERSION);
}

#[tokio::test]
async fn a_read_without_results_is_bounded_too() {
    let server = server().await;
    let mut primary = server.ready().await;
    let updates = (0..5000).map(|number| insert(route(number))).collect();
    primary.write_all(updates, v1::write_request::Atomicity::ContinueOnError).await.unwrap();
    let nothing = v1::TableEntry { table_id: ROUTE, metadata: b"x".to_vec(), ..Default::default() };
    assert_eq!(primary.read(vec![asked(nothing.clone()); 10]).await.unwrap(), []);
    let refused = primary.read(vec![asked(nothing); 5000]).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(refused.message().contains("the read examines more than"), "{refused:?}");
}

#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "the device is busy as long as it is held")]
async fn a_read_ends_with_its_client() {
    let server = server().await;
    let mut primary = server.ready().await;
    let cell =
        v1::CounterEntry { counter_id: COUNTER, index: Some(v1::Index { index: 0 }), data: None };
    let cells = vec![entity(Entity::CounterEntry(cell)); 100];
    let (mut client, mut other) = (primary.client.clone(), primary.client.clone());
    {
        let _busy = server.device();
        let request =
            v1::ReadRequest { device_id: DEVICE, entities: cells.clone(), ..Default::default() };
        let read = tokio::spawn(async move { client.read(request).await.map(drop) });
        // Sequential calls on one connection.
        for _ in 0..10 {
            other.capabilities(v1::CapabilitiesRequest::default()).await.unwrap();
        }
        read.abort();
        for _ in 0..10 {
            other.capabilities(v1::CapabilitiesRequest::default()).await.unwrap();
        }
    }
    primary.read(cells[..1].to_vec()).await.unwrap();
    assert!(server.device().counters_read <= 2, "{}", server.device().counters_read);
}

/// The time of a read is checked after few cells if each of them has many values.
#[tokio::test]
async fn few_large_cells_are_read_at_once() {
    use info::p4_data_type_spec::TypeSpec;
    const CELLS: i32 = 1000;
    let mut info = kinds();
    let mut of = info.digests[0].type_spec.clone().unwrap();
    let Some(TypeSpec::Tuple(tuple)) = &mut of.type_spec else { panic!("{of:?}") };
    tuple.members = vec![tuple.members[0].clone(); 100];
    let id = |one: &info::Register| one.preamble.as_ref().unwrap().id;
    let register = info.registers.iter_mut().find(|one| id(one) == BALANCE).unwrap();
    (register.type_spec, register.size) = (Some(of), CELLS);
    let server = server().await;
    let mut primary = server.primary().await;
    primary.set(Action::VerifyAndCommit, Some(config(info))).await.unwrap();
    let entry = v1::RegisterEntry { register_id: BALANCE, ..Default::default() };
    let read = primary.read(vec![entity(Entity::RegisterEntry(entry))]).await;
    assert_eq!(read.unwrap().len(), CELLS as usize);
    let most = server.device().most_cells;
    assert!((10..100).contains(&most), "{most} cells at once");
}
