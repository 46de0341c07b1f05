//! Tests of clients that do not read large answers.

use std::time::Duration;

use crate::apart::Apart;
use crate::common::unread::{unread_config, until_accepted};
use crate::common::*;
use p4runtime::v1::entity::Entity;
use p4runtime::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime::v1::set_forwarding_pipeline_config_request::Action;
use p4runtime::v1::{self, write_request::Atomicity};
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

/// Requests all cells of the register without reading the answer.
async fn unread_cells(channel: Channel) -> Result<Streaming<v1::ReadResponse>, Status> {
    let entry = v1::RegisterEntry { register_id: BALANCE, ..Default::default() };
    let entities = vec![entity(Entity::RegisterEntry(entry))];
    let request = v1::ReadRequest { device_id: DEVICE, entities, ..Default::default() };
    let mut stream = P4RuntimeClient::new(channel).read(request).await?.into_inner();
    // A read that is refused has no results.
    stream.message().await?;
    Ok(stream)
}

/// Number of refused answers; the others are kept.
fn refused<T>(answers: &[Result<T, Status>]) -> usize {
    let refused = answers.iter().filter_map(|one| one.as_ref().err());
    refused.inspect(|why| assert_eq!(why.code(), Code::ResourceExhausted, "{why:?}")).count()
}

#[tokio::test]
async fn unread_answers_with_a_program_are_bounded() {
    let apart = Apart::start();
    let mut primary = apart.joined(1).await;
    let large =
        v1::ForwardingPipelineConfig { p4_device_config: vec![7; 16 << 20], ..config(kinds()) };
    primary.set(Action::VerifyAndCommit, Some(large)).await.unwrap();
    let before = apart.most();
    let mut answers = Vec::new();
    for _ in 0..40 {
        answers.push(unread_config(apart.channel().await).await);
    }
    let taken = apart.most() - before;
    assert!(taken < 320 << 20, "{} MiB", taken >> 20);
    let count = refused(&answers);
    assert!((1..40).contains(&count), "{count} refused");
    // Those of the primary are counted apart.
    let get = v1::GetForwardingPipelineConfigRequest { device_id: DEVICE, ..Default::default() };
    let mut client = primary.client.clone().max_decoding_message_size(usize::MAX);
    client.get_forwarding_pipeline_config(get).await.unwrap();
    // One that is read, or whose client is gone, makes room.
    drop(answers);
    until_accepted(Duration::from_secs(10), async || unread_config(apart.channel().await).await)
        .await;
}

#[tokio::test]
async fn unread_answers_with_cells_are_bounded() {
    let apart = Apart::start();
    let mut primary = apart.joined(1).await;
    let mut info = kinds();
    let register =
        info.registers.iter_mut().find(|one| one.preamble.as_ref().unwrap().id == BALANCE);
    register.unwrap().size = 1 << 19;
    primary.set(Action::VerifyAndCommit, Some(config(info))).await.unwrap();
    let before = apart.most();
    let mut answers = Vec::new();
    for _ in 0..10 {
        answers.push(unread_cells(apart.channel().await).await);
    }
    let taken = apart.most() - before;
    assert!(taken < 320 << 20, "{} MiB", taken >> 20);
    let count = refused(&answers);
    assert!((1..10).contains(&count), "{count} refused");
    drop(answers);
    until_accepted(Duration::from_secs(10), async || unread_cells(apart.channel().await).await)
        .await;
}

/// A batch has an error for each update, and each error names the table.
#[tokio::test]
async fn long_names_are_truncated_in_errors() {
    let apart = Apart::start();
    let mut primary = apart.joined(1).await;
    let mut info = kinds();
    let mut names = info.tables.iter_mut().filter_map(|one| one.preamble.as_mut());
    let table = names.find(|one| one.id == ROUTE);
    table.unwrap().name = "x".repeat(1 << 20);
    primary.set(Action::VerifyAndCommit, Some(config(info))).await.unwrap();
    let before = apart.most();
    let updates = vec![delete(route(1)); 500];
    let status = primary.write_all(updates, Atomicity::ContinueOnError).await.unwrap_err();
    let taken = apart.most() - before;
    assert!(taken < 32 << 20, "{} MiB", taken >> 20);
    let first = &errors(&status)[0].message;
    assert!(first.contains("xxx…` has no such entry"), "{first}");
}

#[tokio::test]
async fn metadata_of_entries_has_a_limit() {
    let apart = Apart::start();
    let mut primary = apart.joined(1).await;
    primary.set(Action::VerifyAndCommit, Some(config(kinds()))).await.unwrap();
    let entry = |number, bytes| v1::TableEntry { metadata: vec![7; bytes], ..route(number) };
    let (code, why) = primary.write(insert(entry(0, 4097))).await.unwrap_err();
    assert_eq!(code, Code::InvalidArgument, "{why}");
    assert!(why.contains("metadata of 4097 bytes exceeds the limit of 4096"), "{why}");
    let before = apart.most();
    // 160 MiB, in batches.
    let mut last = Ok(());
    for batch in 0..10 {
        let updates = (0..4096).map(|at| insert(entry(batch * 4096 + at, 4096))).collect();
        last = primary.write_all(updates, Atomicity::ContinueOnError).await;
    }
    let errors = errors(&last.unwrap_err());
    assert_eq!(Code::from(errors[0].canonical_code), Code::ResourceExhausted, "{:?}", errors[0]);
    let taken = apart.most() - before;
    assert!(taken < 160 << 20, "{} MiB", taken >> 20);
    // Less metadata makes room.
    primary.write(modify(entry(0, 0))).await.unwrap();
    primary.write(insert(entry(50_000, 4096))).await.unwrap();
    assert_eq!(
        primary.write(insert(entry(50_001, 1))).await.unwrap_err().0,
        Code::ResourceExhausted
    );
}
