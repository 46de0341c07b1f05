//! Tests of clients that take no byte of an answer: their flow-control window is closed.

use std::time::Duration;

use crate::apart::Apart;
use crate::common::unread::{unread_config, until_accepted};
use crate::common::*;
use p4runtime::MAX_CLIENTS;
use p4runtime::v1::entity::Entity;
use p4runtime::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime::v1::set_forwarding_pipeline_config_request::Action;
use p4runtime::v1::stream_message_request::Update as Say;
use p4runtime::v1::stream_message_response::Update as Heard;
use p4runtime::v1::{self, stream_error};
use tokio::sync::mpsc;
use tonic::transport::Channel;
use tonic::{Code, Streaming};

/// An answer and its client, without which the connection ends.
type Read = (Streaming<v1::ReadResponse>, P4RuntimeClient<Channel>);

/// Concurrent reads of clients that are not primary, of all and of a connection (docs/p4runtime.md).
const READERS: usize = 32;
const OF_A_CONNECTION: usize = 8;

/// Results of five messages. Those of all readers fit the memory for answers.
const CELLS: i32 = 17_000;

/// A time that is over in no test.
const HOUR: Duration = Duration::from_secs(3600);

/// A register of this size in `kinds.p4`.
fn with_cells(size: i32) -> v1::ForwardingPipelineConfig {
    let mut info = kinds();
    let register =
        info.registers.iter_mut().find(|one| one.preamble.as_ref().unwrap().id == BALANCE);
    register.unwrap().size = size;
    config(info)
}

fn cells() -> v1::ReadRequest {
    let entry = v1::RegisterEntry { register_id: BALANCE, ..Default::default() };
    let entities = vec![entity(Entity::RegisterEntry(entry))];
    v1::ReadRequest { device_id: DEVICE, entities, ..Default::default() }
}

/// Starts this number of reads on a connection, and returns the answers as they begin.
async fn read_nothing(server: &Server, count: usize, answers: &mpsc::UnboundedSender<Read>) {
    let channel = server.closed_channel().await;
    for _ in 0..count {
        let (mut client, answers) = (P4RuntimeClient::new(channel.clone()), answers.clone());
        tokio::spawn(async move {
            let answer = client.read(cells()).await.unwrap().into_inner();
            let _ = answers.send((answer, client));
        });
    }
}

/// The next answers.
async fn begun(answers: &mut mpsc::UnboundedReceiver<Read>, count: usize) -> Vec<Read> {
    let mut begun = Vec::new();
    for number in 0..count {
        let next = tokio::time::timeout(Duration::from_secs(30), answers.recv()).await;
        let next = next.unwrap_or_else(|_| panic!("no more than {number} answers in 30 s"));
        begun.push(next.unwrap());
    }
    begun
}

#[tokio::test]
async fn unread_results_of_any_size_keep_their_places() {
    let server = server_with(|service| service.reader_waits(HOUR)).await;
    let mut primary = server.ready().await;
    let (sender, mut answers) = mpsc::unbounded_channel();
    for _ in 0..2 * READERS / OF_A_CONNECTION {
        read_nothing(&server, OF_A_CONNECTION, &sender).await;
    }
    let unread = begun(&mut answers, READERS).await;
    for _ in 0..200 {
        primary.read(cells().entities).await.unwrap();
    }
    let more = std::iter::from_fn(|| answers.try_recv().ok()).count();
    assert_eq!(more, 0, "more than {READERS} reads");
    // Their places are free once they are gone.
    drop(unread);
    begun(&mut answers, READERS).await;
}

#[tokio::test]
async fn a_connection_has_a_share_of_the_reads_and_a_primary_its_own() {
    let server = server_with(|service| service.reader_waits(HOUR)).await;
    let mut primary = server.primary().await;
    primary.set(Action::VerifyAndCommit, Some(with_cells(CELLS))).await.unwrap();
    let (sender, mut answers) = mpsc::unbounded_channel();
    // Calls that wait for a place do not keep other connections from reading.
    read_nothing(&server, 3 * OF_A_CONNECTION, &sender).await;
    let first = begun(&mut answers, OF_A_CONNECTION).await;
    let mut other = server.joined(0).await.0;
    assert_eq!(other.read(cells().entities).await.unwrap().len(), CELLS as usize);
    assert!(answers.try_recv().is_err(), "more than {OF_A_CONNECTION} reads");
    for _ in 0..4 {
        read_nothing(&server, OF_A_CONNECTION, &sender).await;
    }
    let _all = (first, begun(&mut answers, READERS - OF_A_CONNECTION).await);
    let read = primary.read(cells().entities);
    let read = tokio::time::timeout(Duration::from_secs(30), read).await;
    assert_eq!(read.expect("others block the primary").unwrap().len(), CELLS as usize);
}

#[tokio::test]
async fn unread_results_are_dropped_when_their_time_is_over() {
    let server = server_with(|service| service.reader_waits(Duration::from_millis(50))).await;
    let mut primary = server.primary().await;
    primary.set(Action::VerifyAndCommit, Some(with_cells(CELLS))).await.unwrap();
    let (sender, mut answers) = mpsc::unbounded_channel();
    for _ in 0..8 {
        read_nothing(&server, 2 * OF_A_CONNECTION, &sender).await;
    }
    // All of them begin, and none ends.
    let _unread = begun(&mut answers, 16 * OF_A_CONNECTION).await;
}

#[tokio::test]
async fn an_unread_program_is_dropped_when_its_time_is_over() {
    // Long enough for the answers below to meet each other.
    let server = server_with(|service| service.reader_waits(Duration::from_secs(3))).await;
    let mut primary = server.primary().await;
    let large =
        v1::ForwardingPipelineConfig { p4_device_config: vec![7; 32 << 20], ..config(kinds()) };
    primary.set(Action::VerifyAndCommit, Some(large)).await.unwrap();
    let channel = server.closed_channel().await;
    let mut unread = Vec::new();
    let refused = loop {
        match unread_config(channel.clone()).await {
            Ok(answer) => unread.push(answer),
            Err(status) => break status,
        }
        assert!(unread.len() < 10, "a program of 32 MiB ten times");
    };
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    until_accepted(Duration::from_secs(30), async || unread_config(channel.clone()).await).await;
}

/// An unread stream of a client, which has not joined yet.
async fn unread_stream(
    apart: &Apart,
) -> (mpsc::Sender<v1::StreamMessageRequest>, Streaming<v1::StreamMessageResponse>) {
    let (out, requests) = mpsc::channel(64);
    let requests = tokio_stream::wrappers::ReceiverStream::new(requests);
    let mut client = P4RuntimeClient::new(apart.closed_channel().await);
    (out, client.stream_channel(requests).await.unwrap().into_inner())
}

fn say(update: Say) -> v1::StreamMessageRequest {
    v1::StreamMessageRequest { update: Some(update) }
}

/// A client that is disconnected because it reads too slowly leaves nothing in its queue, and its
/// place is free when its stream is.
#[tokio::test]
async fn a_stream_that_is_not_read_keeps_its_place_and_no_messages() {
    let apart = Apart::start();
    let mut backup = apart.joined(0).await;
    let before = apart.most();
    let mut slow = Vec::new();
    // Several hundred KiB in memory, each.
    let large =
        v1::PacketOut { metadata: vec![v1::PacketMetadata::default(); 9000], ..Default::default() };
    for election in 1..MAX_CLIENTS as u128 {
        let (out, stream) = unread_stream(&apart).await;
        let update = v1::MasterArbitrationUpdate {
            device_id: DEVICE,
            election_id: Some(id(election)),
            ..Default::default()
        };
        out.send(say(Say::Arbitration(update))).await.unwrap();
        assert_eq!(backup.standing().await.0, Code::AlreadyExists);
        for _ in 0..6 {
            out.send(say(Say::Packet(large.clone()))).await.unwrap();
        }
        assert_eq!(backup.standing().await.0, Code::NotFound, "the server has ended its stream");
        slow.push((out, stream));
    }
    let taken = apart.most() - before;
    assert!(taken < 45 << 20, "{} MiB", taken >> 20);
    let mut joined = Vec::new();
    let refused = loop {
        let mut one = apart.silent().await;
        one.arbitrate(None).await;
        match one.heard().await {
            Ok(_) => joined.push(one),
            Err(status) => break status,
        }
        assert!(joined.len() < 2, "more than {MAX_CLIENTS} clients");
    };
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    drop((slow, joined));
    loop {
        let mut one = apart.silent().await;
        one.arbitrate(None).await;
        if one.heard().await.is_ok() {
            break;
        }
    }
}

/// Payloads are returned to the primary alone, which sends packets.
#[tokio::test]
async fn a_refused_packet_returns_its_payload_to_the_primary_alone() {
    let server = server().await;
    let mut primary = server.ready().await;
    let mut backup = server.joined(0).await.0;
    for (one, length, code) in
        [(&mut primary, 5, Code::InvalidArgument), (&mut backup, 0, Code::PermissionDenied)]
    {
        let metadata = vec![v1::PacketMetadata { metadata_id: 7, value: vec![1] }];
        let packet = v1::PacketOut { payload: b"hello".to_vec(), metadata: metadata.clone() };
        one.say(Say::Packet(packet)).await;
        let Heard::Error(error) = one.heard().await.unwrap() else { panic!("no error") };
        assert_eq!(Code::from(error.canonical_code), code, "{error:?}");
        let Some(stream_error::Details::PacketOut(v1::PacketOutError { packet_out: Some(packet) })) =
            error.details
        else {
            panic!("{error:?}")
        };
        assert_eq!((packet.payload.len(), packet.metadata), (length, metadata));
    }
}

/// Messages of other architectures are not returned, whatever their size.
#[tokio::test]
async fn a_refused_message_of_another_architecture_is_not_returned() {
    let server = server().await;
    let mut primary = server.ready().await;
    let mut backup = server.joined(0).await.0;
    for one in [&mut primary, &mut backup] {
        let other = prost_types::Any { type_url: "u".repeat(1 << 20), value: vec![7; 2 << 20] };
        one.say(Say::Other(other)).await;
        let Heard::Error(error) = one.heard().await.unwrap() else { panic!("no error") };
        assert_eq!(Code::from(error.canonical_code), Code::Unimplemented);
        let Some(stream_error::Details::Other(v1::StreamOtherError { other })) = error.details
        else {
            panic!("no details of such a message")
        };
        assert!(other.is_none(), "it is returned");
    }
}
