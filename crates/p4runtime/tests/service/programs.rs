//! SetForwardingPipelineConfig and GetForwardingPipelineConfig.

use std::sync::Arc;

use crate::common::*;
use p4info::v1 as info;
use p4runtime::v1::entity::Entity;
use p4runtime::v1::get_forwarding_pipeline_config_request::ResponseType;
use p4runtime::v1::set_forwarding_pipeline_config_request::Action;
use p4runtime::v1::{self, ForwardingPipelineConfig};
use p4runtime::{Call, Direct, Entry, Initial, Key, Match};
use tonic::Code;

async fn get(server: &Server, parts: ResponseType) -> Option<ForwardingPipelineConfig> {
    let request =
        v1::GetForwardingPipelineConfigRequest { device_id: DEVICE, response_type: parts.into() };
    let answer = server.client().await.get_forwarding_pipeline_config(request).await;
    answer.unwrap().into_inner().config
}

#[tokio::test]
async fn a_program_is_given_back_as_it_came() {
    let server = server().await;
    assert_eq!(get(&server, ResponseType::All).await, None, "there is none yet");
    let mut primary = server.primary().await;
    let no = primary.write_all(vec![insert(route(1))], Default::default()).await.unwrap_err();
    assert_eq!(no.code(), Code::FailedPrecondition);
    let no = primary.read(vec![]).await.unwrap_err();
    assert_eq!(no.code(), Code::FailedPrecondition);

    let whole = config(kinds());
    primary.set(Action::VerifyAndCommit, Some(whole.clone())).await.unwrap();
    assert_eq!(get(&server, ResponseType::All).await.unwrap(), whole);
    let cookie = get(&server, ResponseType::CookieOnly).await.unwrap();
    assert_eq!(cookie, ForwardingPipelineConfig { cookie: whole.cookie, ..Default::default() });
    let info = get(&server, ResponseType::P4infoAndCookie).await.unwrap();
    assert_eq!(info, ForwardingPipelineConfig { p4_device_config: Vec::new(), ..whole.clone() });
    let program = get(&server, ResponseType::DeviceConfigAndCookie).await.unwrap();
    assert_eq!(program, ForwardingPipelineConfig { p4info: None, ..whole });
    assert_eq!(server.device().state.program, b"program");
}

async fn entries(primary: &mut Controller) -> usize {
    primary.read(vec![entity(Entity::TableEntry(Default::default()))]).await.unwrap().len()
}

#[tokio::test]
async fn to_verify_changes_nothing() {
    let server = server().await;
    let mut primary = server.ready().await;
    primary.write(insert(route(1))).await.unwrap();
    let other = ForwardingPipelineConfig { p4_device_config: b"other".to_vec(), ..config(kinds()) };
    primary.set(Action::Verify, Some(other)).await.unwrap();
    let bad = ForwardingPipelineConfig { p4_device_config: b"bad".to_vec(), ..config(kinds()) };
    for action in
        [Action::Verify, Action::VerifyAndSave, Action::VerifyAndCommit, Action::ReconcileAndCommit]
    {
        let refused = primary.set(action, Some(bad.clone())).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        assert_eq!(refused.message(), "this is no program");
        let refused = primary.set(action, None).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    }
    let refused = primary.set(Action::Unspecified, Some(bad)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    assert_eq!(server.device().state.program, b"program");
    assert_eq!(entries(&mut primary).await, 1);
    // A commit starts with empty tables.
    primary.set(Action::VerifyAndCommit, Some(config(kinds()))).await.unwrap();
    assert_eq!((entries(&mut primary).await, server.device().state.entries.len()), (0, 0));
}

#[tokio::test]
async fn a_saved_pipeline_accepts_writes_before_it_runs() {
    let server = server().await;
    let mut primary = server.ready().await;
    primary.write(insert(all_kinds(1))).await.unwrap();
    let missing = primary.set(Action::Commit, None).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);

    let mut info = kinds();
    info.tables.retain(|one| one.preamble.as_ref().unwrap().id != ALL);
    info.direct_counters.clear();
    info.direct_meters.clear();
    let saved = ForwardingPipelineConfig { p4_device_config: b"saved".to_vec(), ..config(info) };
    primary.set(Action::VerifyAndSave, Some(saved.clone())).await.unwrap();
    assert_eq!(server.device().state.program, b"program");
    assert_eq!(get(&server, ResponseType::All).await.unwrap(), saved, "what reads and writes mean");
    assert_eq!(entries(&mut primary).await, 0);
    let gone = primary.write(insert(all_kinds(2))).await.unwrap_err();
    assert_eq!(gone.0, Code::InvalidArgument, "the new program has no such table");
    primary.write(insert(route(1))).await.unwrap();
    primary.write(insert(route(2))).await.unwrap();
    primary.write(delete(route(1))).await.unwrap();
    let data = Some(v1::CounterData { packet_count: 4, byte_count: 0 });
    let counter = v1::CounterEntry { counter_id: COUNTER, index: None, data };
    let counter = update(v1::update::Type::Modify, Entity::CounterEntry(counter));
    primary.write(counter).await.unwrap();
    let cells = entity(Entity::CounterEntry(Default::default()));
    let none = primary.read(vec![cells]).await.unwrap_err();
    assert_eq!(codes(&none), [Code::FailedPrecondition]);
    assert_eq!(server.device().state.entries.len(), 1, "packets meet the old ones");

    let brings = primary.set(Action::Commit, Some(saved)).await.unwrap_err();
    assert_eq!(brings.code(), Code::InvalidArgument);
    primary.set(Action::Commit, None).await.unwrap();
    assert_eq!(entries(&mut primary).await, 1);
    {
        let device = server.device();
        assert_eq!((&*device.state.program, device.state.entries.len()), (&b"saved"[..], 1));
        assert_eq!(device.state.counts[&(COUNTER, 0)].packets, 4);
        assert_eq!(device.commits, 2, "all of it at once");
    }
    assert_eq!(primary.set(Action::Commit, None).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn a_new_program_may_keep_the_entries() {
    let server = server().await;
    let mut primary = server.ready().await;
    for number in 1..=3 {
        let metadata = vec![number];
        let entry = v1::TableEntry { metadata, ..all_kinds(number) };
        primary.write(insert(entry)).await.unwrap();
    }
    let default = v1::TableEntry {
        table_id: ROUTE,
        is_default_action: true,
        action: set(1, 2),
        ..Default::default()
    };
    primary.write(modify(default)).await.unwrap();
    let data = Some(v1::CounterData { packet_count: 4, byte_count: 0 });
    let counter = v1::CounterEntry { counter_id: COUNTER, index: None, data };
    primary.write(update(v1::update::Type::Modify, Entity::CounterEntry(counter))).await.unwrap();
    let before = primary.read(vec![entity(Entity::TableEntry(Default::default()))]).await.unwrap();

    // A table without written entries may be removed, and a new one may be added.
    let mut info = kinds();
    info.tables.retain(|one| one.preamble.as_ref().unwrap().id != FIXED);
    let next = ForwardingPipelineConfig { p4_device_config: b"next".to_vec(), ..config(info) };
    primary.set(Action::ReconcileAndCommit, Some(next)).await.unwrap();
    let after = primary.read(vec![entity(Entity::TableEntry(Default::default()))]).await.unwrap();
    assert_eq!(before, after);
    {
        let device = server.device();
        assert_eq!((&*device.state.program, device.state.entries.len()), (&b"next"[..], 3));
        assert_eq!(device.state.defaults[&ROUTE].as_ref().unwrap().action, SET);
        assert_eq!(device.state.counts[&(COUNTER, 3)].packets, 4, "carried by the device");
    }

    // Reconciliation that would lose entries is rejected without any effect.
    let wrong: [fn(&mut info::P4Info); 4] = [
        |info| info.tables[0].match_fields[0].bitwidth = 17,
        |info| info.tables[0].size = 2,
        |info| info.actions.iter_mut().for_each(|one| one.params.truncate(1)),
        |info| info.tables[0].is_const_table = true,
    ];
    for (number, change) in wrong.iter().enumerate() {
        let mut info = kinds();
        assert_eq!(info.tables[0].preamble.as_ref().unwrap().id, ALL);
        change(&mut info);
        let refused = primary.set(Action::ReconcileAndCommit, Some(config(info))).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{number}: {refused:?}");
        assert!(refused.message().contains("`c.all`"), "{number}: {refused:?}");
    }
    assert_eq!(server.device().state.program, b"next");
    assert_eq!(entries(&mut primary).await, 3);
}

/// A program with initial entries, some of them `const`.
#[tokio::test]
async fn entries_of_the_program_itself_are_there_and_may_be_constant() {
    let server = server().await;
    let mut primary = server.primary().await;
    let entry = |number: u8, length| Entry {
        table: ROUTE,
        key: Arc::new(Key {
            matches: vec![Match::Lpm { value: vec![number, 0, 0, 0].into(), length }],
            priority: 0,
        }),
        call: Call { action: DROP, arguments: Vec::new() },
        direct: Direct::default(),
    };
    let call = Call { action: SET, arguments: vec![vec![0, 1].into(), vec![0, 2].into()] };
    server.device().initial = Initial {
        entries: vec![(entry(10, 8), true), (entry(20, 8), false)],
        defaults: vec![(ALL, call)],
        room: [(ROUTE, 3)].into(),
    };
    primary.set(Action::VerifyAndCommit, Some(config(kinds()))).await.unwrap();
    let read = primary.read(vec![entity(Entity::TableEntry(Default::default()))]).await.unwrap();
    let constant = |entity: &v1::Entity| match &entity.entity {
        Some(Entity::TableEntry(entry)) => entry.is_const,
        other => panic!("{other:?}"),
    };
    assert_eq!(read.iter().map(constant).collect::<Vec<_>>(), [true, false]);
    let default = v1::TableEntry { is_default_action: true, table_id: ALL, ..Default::default() };
    let read = primary.read(vec![entity(Entity::TableEntry(default.clone()))]).await.unwrap();
    let wanted = v1::TableEntry { action: set(1, 2), ..default };
    assert_eq!(read, [entity(Entity::TableEntry(wanted))]);

    let of = |number: u8| v1::TableEntry {
        table_id: ROUTE,
        r#match: vec![lpm(1, &[number, 0, 0, 0], 8)],
        action: set(1, 2),
        ..Default::default()
    };
    for update in [modify(of(10)), delete(of(10))] {
        assert_eq!(primary.write(update).await.unwrap_err().0, Code::PermissionDenied);
    }
    primary.write(modify(of(20))).await.unwrap();
    // The program's map has room for three, whatever p4info says.
    primary.write(insert(of(30))).await.unwrap();
    assert_eq!(primary.write(insert(of(40))).await.unwrap_err().0, Code::ResourceExhausted);
    primary.write(delete(of(20))).await.unwrap();
    primary.write(insert(of(40))).await.unwrap();
    assert_eq!(entries(&mut primary).await, 3);
}

#[tokio::test]
async fn p4info_that_contradicts_itself_is_refused() {
    let server = server().await;
    let mut primary = server.ready().await;
    let id = |one: &mut Option<info::Preamble>, id| one.as_mut().unwrap().id = id;
    type Change = fn(&mut info::P4Info, fn(&mut Option<info::Preamble>, u32));
    let wrong: &[(Change, &str)] = &[
        (|info, id| id(&mut info.tables[0].preamble, ROUTE), "duplicate id"),
        (|info, id| id(&mut info.tables[0].preamble, SET), "of another kind"),
        (|info, _| info.tables[0].preamble = None, "preamble"),
        (|info, _| info.tables[0].action_refs[0].id = 9, "an action that is not there"),
        (|info, _| info.tables[0].const_default_action_id = 9, "none of its actions"),
        (|info, _| info.tables[0].match_fields[0].bitwidth = 0, "a width that no number has"),
        (|info, _| info.tables[0].match_fields[0].bitwidth = i32::MAX, "a width that no"),
        (|info, _| info.tables[0].match_fields[0].id = 2, "0 or a duplicate"),
        (|info, _| info.tables[0].match_fields[0].r#match = None, "of a kind"),
        (|info, _| info.tables[0].size = -1, "a negative size"),
        (|info, _| info.tables[0].implementation_id = 1, "action profiles"),
        (|info, _| info.counters[0].size = i64::MAX, "more than 2^20 cells"),
        (|info, _| info.direct_counters[0].direct_table_id = 9, "its table is not there"),
        (|info, _| info.tables[1].direct_resource_ids = vec![0x1300_0001], "none of this table's"),
        (
            |info, _| {
                use info::p4_data_type_spec::TypeSpec;
                let named = info::P4NamedType { name: "loop".into() };
                let spec = TypeSpec::NewType(named);
                let spec = info::P4DataTypeSpec { type_spec: Some(spec) };
                info.registers[0].type_spec = Some(spec.clone());
                let original = info::p4_new_type_spec::Representation::OriginalType(spec);
                let new =
                    info::P4NewTypeSpec { representation: Some(original), ..Default::default() };
                info.type_info.get_or_insert_default().new_types.insert("loop".into(), new);
            },
            "or recursive",
        ),
        (|info, _| info.action_profiles.push(Default::default()), "action profiles"),
    ];
    for (number, (change, text)) in wrong.iter().enumerate() {
        let mut info = kinds();
        change(&mut info, id);
        let refused = primary.set(Action::Verify, Some(config(info))).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{number}: {refused:?}");
        assert!(refused.message().contains(text), "{number}: {refused:?}");
    }
}

/// Registers of unsupported types do not interfere.
#[tokio::test]
async fn registers_of_other_types_are_left_alone() {
    let server = server().await;
    let mut primary = server.primary().await;
    let mut info = kinds();
    for one in &mut info.registers {
        if one.preamble.as_ref().unwrap().id == SEEN {
            one.type_spec = None;
        }
    }
    primary.set(Action::VerifyAndCommit, Some(config(info))).await.unwrap();
    let asked = |register_id| {
        let entry = v1::RegisterEntry { register_id, ..Default::default() };
        entity(Entity::RegisterEntry(entry))
    };
    assert_eq!(primary.read(vec![asked(0)]).await.unwrap().len(), 2, "the other one's");
    let status = primary.read(vec![asked(SEEN)]).await.unwrap_err();
    assert_eq!(codes(&status), [Code::Unimplemented]);
}

/// Our programs with a p4info can be installed.
#[tokio::test]
async fn our_programs_are_taken() {
    let server = server().await;
    let mut primary = server.primary().await;
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../p4/tests/programs");
    for name in ["firewall", "rate_limiter", "nat", "load_balancer", "heavy_hitter", "vxlan"] {
        let program = std::fs::read_to_string(format!("{directory}/{name}.p4")).unwrap();
        let set = primary.set(Action::VerifyAndCommit, Some(config(info_of(&program)))).await;
        assert!(set.is_ok(), "{name}: {set:?}");
        let registers = entity(Entity::RegisterEntry(v1::RegisterEntry::default()));
        let read = primary.read(vec![registers]).await;
        assert!(read.is_ok(), "{name}: {read:?}");
    }
}
