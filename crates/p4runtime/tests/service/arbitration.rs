//! Tests of client arbitration, for each rule of the specification.

use crate::common::*;
use p4runtime::MAX_CLIENTS;
use p4runtime::v1;
use p4runtime::v1::stream_message_request::Update;
use tonic::Code;

#[tokio::test]
async fn the_highest_id_is_primary_and_all_clients_are_notified() {
    let server = server().await;
    let (mut low, code) = server.joined(5).await;
    assert_eq!(code, Code::Ok);
    let (mut lower, code) = server.joined(3).await;
    assert_eq!(code, Code::AlreadyExists, "a lower id is a backup's");

    let highest = 1_u128 << 64 | 5;
    let (mut high, code) = server.joined(highest).await;
    assert_eq!(code, Code::Ok, "an id has 128 bits");
    assert_eq!(low.standing().await, (Code::AlreadyExists, Some(highest)));
    assert_eq!(lower.standing().await, (Code::AlreadyExists, Some(highest)));

    // The primary steps down without a successor.
    high.arbitrate(Some(4)).await;
    assert_eq!(high.standing().await, (Code::NotFound, Some(highest)));
    assert_eq!(low.standing().await, (Code::NotFound, Some(highest)));
    assert_eq!(lower.standing().await, (Code::NotFound, Some(highest)));
    // A client needs at least the highest election id ever seen to become primary.
    low.arbitrate(Some(6)).await;
    assert_eq!(low.standing().await, (Code::NotFound, Some(highest)));
    low.arbitrate(Some(highest)).await;
    assert_eq!(lower.standing().await, (Code::AlreadyExists, Some(highest)));
    assert_eq!(low.standing().await, (Code::Ok, Some(highest)));
}

#[tokio::test]
async fn when_the_primary_leaves_the_backups_are_notified() {
    let server = server().await;
    let (first, _) = server.joined(9).await;
    let (mut backup, _) = server.joined(1).await;
    drop(first);
    assert_eq!(backup.standing().await, (Code::NotFound, Some(9)));
    let (_again, code) = server.joined(9).await;
    assert_eq!(code, Code::Ok, "its id is free again");
    assert_eq!(backup.standing().await, (Code::AlreadyExists, Some(9)));
}

#[tokio::test]
async fn a_client_that_ends_its_side_is_gone() {
    let server = server().await;
    let (mut first, _) = server.joined(9).await;
    let (mut backup, _) = server.joined(1).await;
    let (out, _) = tokio::sync::mpsc::channel(1);
    first.out = out;
    assert_eq!(backup.standing().await, (Code::NotFound, Some(9)));
    assert_eq!(first.heard().await.unwrap_err().code(), Code::Cancelled, "its stream ends as well");
}

#[tokio::test]
async fn a_client_without_an_election_id_is_not_primary() {
    let server = server().await;
    let mut none = server.silent().await;
    none.arbitrate(None).await;
    assert_eq!(none.standing().await, (Code::NotFound, None));
    let mut other = server.silent().await;
    other.arbitrate(None).await;
    assert_eq!(other.standing().await, (Code::NotFound, None), "no id is nobody else's");
    // Zero is a valid election id.
    none.arbitrate(Some(0)).await;
    assert_eq!(other.standing().await, (Code::AlreadyExists, Some(0)));
    assert_eq!(none.standing().await, (Code::Ok, Some(0)));
    other.election = None;
    let written = other.write_all(Vec::new(), Default::default()).await.unwrap_err();
    assert_eq!(written.code(), Code::PermissionDenied);
}

#[tokio::test]
async fn an_id_that_is_taken_ends_the_stream() {
    let server = server().await;
    let (mut first, _) = server.joined(5).await;
    let mut second = server.silent().await;
    second.arbitrate(Some(5)).await;
    let refused = second.heard().await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    assert!(refused.message().contains("5 is in use by another client"), "{refused:?}");

    let (mut third, _) = server.joined(6).await;
    assert_eq!(first.standing().await, (Code::AlreadyExists, Some(6)));
    third.arbitrate(Some(5)).await;
    assert_eq!(third.heard().await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(first.standing().await, (Code::NotFound, Some(6)), "the primary was closed");
}

#[tokio::test]
async fn only_the_primary_changes_anything() {
    let server = server().await;
    let mut primary = server.ready().await;
    let (mut higher, _) = server.joined(2).await;
    let denied = primary.write_all(vec![insert(all_kinds(1))], Default::default()).await;
    assert_eq!(denied.unwrap_err().code(), Code::PermissionDenied);
    let set = v1::set_forwarding_pipeline_config_request::Action::Verify;
    let denied = primary.set(set, Some(config(kinds()))).await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);
    assert!(server.device().state.entries.is_empty());
    higher.write(insert(all_kinds(1))).await.unwrap();
    assert_eq!(primary.read(vec![]).await.unwrap(), [], "anybody reads");
    let asked = v1::ReadRequest {
        device_id: DEVICE,
        entities: vec![entity(v1::entity::Entity::TableEntry(Default::default()))],
        ..Default::default()
    };
    let mut stranger = server.client().await;
    let mut stranger = stranger.read(asked).await.unwrap().into_inner();
    assert_eq!(
        stranger.message().await.unwrap().unwrap().entities.len(),
        1,
        "without a stream too"
    );
}

#[tokio::test]
async fn an_unknown_device_or_role_is_refused() {
    let server = server().await;
    let refused = async |update: Update| {
        let mut one = server.silent().await;
        one.say(update).await;
        one.heard().await.unwrap_err()
    };
    let update = v1::MasterArbitrationUpdate {
        device_id: DEVICE,
        election_id: Some(id(1)),
        ..Default::default()
    };
    let other = v1::MasterArbitrationUpdate { device_id: 8, ..update.clone() };
    let said = refused(Update::Arbitration(other)).await;
    let known = "unknown device 8: this server has devices 7, 9";
    assert_eq!((said.code(), said.message()), (Code::NotFound, known));
    let role = v1::Role { name: "acl".into(), ..Default::default() };
    let other = v1::MasterArbitrationUpdate { role: Some(role), ..update.clone() };
    let said = refused(Update::Arbitration(other)).await;
    assert_eq!(said.code(), Code::NotFound);
    assert!(said.message().contains("no role `acl`"), "{said:?}");
    let said = refused(Update::Packet(v1::PacketOut::default())).await;
    assert_eq!(said.code(), Code::FailedPrecondition);
    assert!(said.message().contains("the first message of a stream"), "{said:?}");

    let mut one = server.primary().await;
    one.say(Update::Arbitration(v1::MasterArbitrationUpdate { device_id: 8, ..update })).await;
    assert_eq!(one.heard().await.unwrap_err().code(), Code::FailedPrecondition);

    let write = v1::WriteRequest { device_id: 8, ..Default::default() };
    let said = server.client().await.write(write).await.unwrap_err();
    assert_eq!(said.code(), Code::NotFound);
    let write = v1::WriteRequest { device_id: DEVICE, role: "acl".into(), ..Default::default() };
    let said = server.client().await.write(write).await.unwrap_err();
    assert_eq!(said.code(), Code::NotFound);
}

#[tokio::test]
async fn clients_of_a_device_have_a_limit() {
    let server = server().await;
    let mut all = Vec::new();
    for number in 0..MAX_CLIENTS {
        all.push(server.joined(number as u128).await);
    }
    let mut one_more = server.silent().await;
    one_more.arbitrate(Some(1000)).await;
    assert_eq!(one_more.heard().await.unwrap_err().code(), Code::ResourceExhausted);
    drop(all);
}
