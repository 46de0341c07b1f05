//! Tests with messages that decode to a multiple of their encoded size.

use crate::apart::Apart;
use crate::common::*;
use bytes::Bytes;
use p4runtime::LARGEST_MESSAGE;
use p4runtime::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime::v1::stream_message_request::Update as Say;
use p4runtime::v1::{self, write_request::Atomicity};
use prost::Message as _;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

/// Codec that sends raw bytes and discards responses.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        bytes::BufMut::put(to, item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        let length = bytes::Buf::remaining(from);
        bytes::Buf::advance(from, length);
        Ok(Some(()))
    }
}

async fn send(channel: Channel, method: &'static str, bytes: Bytes) -> Result<(), Status> {
    let mut client = tonic::client::Grpc::new(channel).max_encoding_message_size(usize::MAX);
    client.ready().await.map_err(|why| Status::unavailable(why.to_string()))?;
    let path = tonic::codegen::http::uri::PathAndQuery::from_static(method);
    client.unary(Request::new(bytes), path, Raw).await.map(drop)
}

const WRITE: &str = "/p4.v1.P4Runtime/Write";

/// `22 00` is an empty update (`WriteRequest.updates`, field 4): two bytes that decode to several
/// hundred.
fn empty_updates(length: usize) -> Bytes {
    [0x22, 0].into_iter().cycle().take(length).collect::<Vec<u8>>().into()
}

#[tokio::test]
async fn a_client_that_is_not_primary_takes_no_memory_with_empty_updates() {
    let apart = Apart::start();
    let before = apart.most();
    for length in [2 << 20, 4 << 20, 64 << 20] {
        let refused = send(apart.channel().await, WRITE, empty_updates(length)).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{length}: {refused:?}");
    }
    // Each of these is within the limit, but not all of them together.
    let mut many = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let channel = apart.channel().await;
        many.spawn(async move { send(channel, WRITE, empty_updates(40_000)).await });
    }
    assert!(many.join_all().await.iter().all(Result::is_err), "nobody is primary");
    // Another client is not affected.
    let capabilities = "/p4.v1.P4Runtime/Capabilities";
    send(apart.channel().await, capabilities, Bytes::new()).await.unwrap();
    let taken = apart.most() - before;
    assert!(taken < 128 << 20, "{} MiB", taken >> 20);
}

#[tokio::test]
async fn nested_and_packed_and_unknown_fields_are_counted() {
    let apart = Apart::start();
    let before = apart.most();
    // Each repeats a short field: entities of a read, members of a value set, matches.
    let inner = |head: &[u8], length: usize, element: &[u8]| {
        let content: Vec<u8> = element.iter().copied().cycle().take(length).collect();
        let mut message = head.to_vec();
        let mut left = content.len() as u64;
        while left >= 0x80 {
            message.push(left as u8 | 0x80);
            left >>= 7;
        }
        message.push(left as u8);
        [message, content].concat()
    };
    // WriteRequest.updates{entity{table_entry{match, match, ...}}}
    let matches = inner(&[0x12], 3 << 20, &[0x12, 0]);
    let entity = inner(&[0x12], matches.len(), &matches);
    let update = inner(&[0x22], entity.len(), &entity);
    for (method, message) in [
        ("/p4.v1.P4Runtime/Read", [0x12, 0].repeat(2 << 20)),
        (WRITE, update),
        // Truncated, so that decoding fails, but only after the elements.
        (WRITE, [[0x22, 0].repeat(2 << 20), vec![0x22, 0xff]].concat()),
    ] {
        let refused = send(apart.channel().await, method, message.into()).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{method}: {refused:?}");
    }
    let taken = apart.most() - before;
    assert!(taken < 64 << 20, "{} MiB", taken >> 20);
}

/// A stream of a client, after its first arbitration update.
async fn session(
    channel: Channel,
    election: u128,
) -> (tokio::sync::mpsc::Sender<v1::StreamMessageRequest>, Streaming<v1::StreamMessageResponse>) {
    let (out, requests) = tokio::sync::mpsc::channel(1);
    let requests = tokio_stream::wrappers::ReceiverStream::new(requests);
    let mut client = P4RuntimeClient::new(channel);
    let mut stream = client.stream_channel(requests).await.unwrap().into_inner();
    out.send(arbitration(Some(election))).await.unwrap();
    stream.message().await.unwrap().unwrap();
    (out, stream)
}

fn arbitration(election: Option<u128>) -> v1::StreamMessageRequest {
    let election_id = election.map(id);
    let update =
        v1::MasterArbitrationUpdate { device_id: DEVICE, election_id, ..Default::default() };
    v1::StreamMessageRequest { update: Some(Say::Arbitration(update)) }
}

fn packet_out(length: usize) -> v1::StreamMessageRequest {
    let packet = v1::PacketOut { payload: vec![7; length], metadata: Vec::new() };
    v1::StreamMessageRequest { update: Some(Say::Packet(packet)) }
}

/// Refused packets are returned to a client that does not read them.
#[tokio::test]
async fn returned_packets_are_bounded_in_bytes() {
    let apart = Apart::start();
    let (_backup, mut backup) = session(apart.channel().await, 1).await;
    let (out, mut stream) = session(apart.channel().await, 2).await;
    backup.message().await.unwrap().unwrap();
    // One that no packet is as large as is reported without its bytes.
    out.send(packet_out(3 << 20)).await.unwrap();
    let heard = stream.message().await.unwrap().unwrap();
    assert!(heard.encoded_len() < 1000, "{} bytes", heard.encoded_len());
    let before = apart.most();
    // The server ends the stream when the queue is full. Then a send fails, or blocks until the task
    // is aborted; the test accepts both. A server that takes all packets takes the last update too,
    // and its memory is too large.
    let talk = tokio::spawn(async move {
        for _ in 0..200 {
            if out.send(packet_out(900_000)).await.is_err() {
                return;
            }
        }
        let _ = out.send(arbitration(None)).await;
        // Dropping `out` would end the stream without a reason.
        out.closed().await;
    });
    let told = backup.message().await.unwrap().unwrap();
    assert!(format!("{told:?}").contains("no client is primary"), "{told:?}");
    let taken = apart.most() - before;
    assert!(taken < 64 << 20, "{} MiB", taken >> 20);
    let ended = loop {
        match stream.message().await {
            Ok(message) => assert!(message.is_some(), "an end without a reason"),
            Err(ended) => break ended,
        }
    };
    assert_eq!(ended.code(), Code::ResourceExhausted, "{ended:?}");
    talk.abort();
}

/// The primary may send more, and other clients are not affected.
#[tokio::test]
async fn the_primary_alone_may_send_much() {
    let server = server().await;
    let mut primary = server.ready().await;
    let updates: Vec<v1::Update> = (0..60_000).map(|number| insert(route(number))).collect();
    primary.write_all(updates.clone(), Atomicity::ContinueOnError).await.unwrap();
    let mut other = server.joined(0).await.0;
    let refused = other.write_all(updates, Atomicity::ContinueOnError).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(refused.message().contains("the primary may send more"), "{refused:?}");
    // A former primary has the smaller limits again.
    let (_next, code) = server.joined(9).await;
    assert_eq!(code, Code::Ok);
    let large = vec![insert(route(1)); 60_000];
    let refused = primary.write_all(large, Atomicity::ContinueOnError).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    let other_channel = Channel::from_shared(format!("http://{}", server.address)).unwrap();
    let other_channel = other_channel.connect().await.unwrap();
    let empty = send(other_channel, WRITE, empty_updates(LARGEST_MESSAGE)).await;
    assert_eq!(empty.unwrap_err().code(), Code::ResourceExhausted);
}
