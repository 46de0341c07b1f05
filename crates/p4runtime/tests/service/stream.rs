//! Tests of packets and digests on the stream, and of clients that stop reading or disconnect.

use crate::common::*;
use p4runtime::v1::stream_message_request::Update as Say;
use p4runtime::v1::stream_message_response::Update as Heard;
use p4runtime::v1::{self, p4_data, stream_error, update};
use p4runtime::{Data, Event, Packet, QUEUE};
use tonic::{Code, Status};

fn packet_out(payload: &[u8], port: &[u8]) -> Say {
    let metadata = vec![v1::PacketMetadata { metadata_id: 1, value: port.to_vec() }];
    Say::Packet(v1::PacketOut { payload: payload.to_vec(), metadata })
}

fn error(heard: Result<Heard, Status>) -> v1::StreamError {
    match heard.unwrap() {
        Heard::Error(error) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn packets_go_out_from_the_primary() {
    let server = server().await;
    let mut primary = server.ready().await;
    primary.say(packet_out(b"hello", &[0, 1, 5])).await;
    // An invalid packet-out is returned, which also shows that the previous ones have been
    // processed.
    for (bad, code, what) in [
        (packet_out(b"hello", &[2, 0]), Code::OutOfRange, "does not fit in 9 bits"),
        (packet_out(b"", &[1]), Code::InvalidArgument, "an empty packet"),
        (Say::Packet(v1::PacketOut::default()), Code::InvalidArgument, "packet metadata 1"),
    ] {
        primary.say(bad).await;
        let error = error(primary.heard().await);
        assert_eq!(Code::from(error.canonical_code), code, "{error:?}");
        assert!(error.message.contains(what), "{error:?}");
        assert!(matches!(error.details, Some(stream_error::Details::PacketOut(_))));
    }
    let sent = server.device().sent.clone();
    let port: p4runtime::Bits = vec![1, 5].into();
    assert_eq!(sent, [Packet { payload: b"hello".to_vec(), metadata: vec![(1, port)] }]);

    let (mut backup, _) = server.joined(0).await;
    backup.say(packet_out(b"hello", &[1])).await;
    assert_eq!(Code::from(error(backup.heard().await).canonical_code), Code::PermissionDenied);
    backup.say(Say::Other(prost_types::Any::default())).await;
    assert_eq!(Code::from(error(backup.heard().await).canonical_code), Code::Unimplemented);
    assert_eq!(server.device().sent.len(), 1);
}

#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "the device is busy as long as it is held")]
async fn many_small_packets_wait_for_a_device_that_is_busy() {
    const COUNT: usize = 40_000;
    let server = server().await;
    let mut primary = server.ready().await;
    let (out, held) = (primary.out.clone(), std::time::Duration::from_millis(500));
    let packet = v1::StreamMessageRequest { update: Some(packet_out(&[7; 60], &[1])) };
    let mut left = COUNT;
    {
        let _busy = server.device();
        // Until flow control blocks.
        while let Ok(sent) = tokio::time::timeout(held, out.send(packet.clone())).await {
            sent.unwrap();
            left -= 1;
            // Send each in its own frame.
            tokio::task::yield_now().await;
        }
    }
    assert!(left > COUNT / 2, "{left} of {COUNT} had to wait");
    for _ in 0..left {
        out.send(packet.clone()).await.unwrap();
    }
    // The response arrives after all previous messages.
    primary.arbitrate(Some(1)).await;
    assert_eq!(primary.standing().await.0, Code::Ok);
    assert_eq!(server.device().sent.len(), COUNT);
}

/// Frames of all streams of a connection count together.
#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "the device is busy as long as it is held")]
async fn small_packets_on_many_streams_of_a_connection_wait_too() {
    let server = server().await;
    let mut primary = server.ready().await;
    let mut outs = vec![primary.out.clone()];
    let mut streams = Vec::new();
    for election in 0..15 {
        let (out, requests) = tokio::sync::mpsc::channel(64);
        let requests = tokio_stream::wrappers::ReceiverStream::new(requests);
        let update = v1::MasterArbitrationUpdate {
            device_id: DEVICE,
            election_id: (election > 0).then(|| id(election + 100)),
            ..Default::default()
        };
        let first = v1::StreamMessageRequest { update: Some(Say::Arbitration(update)) };
        out.send(first).await.unwrap();
        let mut stream = primary.client.stream_channel(requests).await.unwrap().into_inner();
        stream.message().await.unwrap().unwrap();
        outs.push(out);
        streams.push(stream);
    }
    let packet = v1::StreamMessageRequest { update: Some(Say::Packet(Default::default())) };
    {
        let _busy = server.device();
        // A request that waits for the device.
        let write = v1::WriteRequest {
            device_id: DEVICE,
            election_id: Some(id(114)),
            updates: vec![insert(route(1))],
            ..Default::default()
        };
        let mut client = primary.client.clone();
        let written = tokio::spawn(async move { client.write(write).await });
        let held = std::time::Duration::from_millis(300);
        let all = outs.iter().map(|out| {
            let (out, packet) = (out.clone(), packet.clone());
            tokio::spawn(async move {
                while let Ok(sent) = tokio::time::timeout(held, out.send(packet.clone())).await {
                    sent.unwrap();
                    tokio::task::yield_now().await;
                }
            })
        });
        for one in all.collect::<Vec<_>>() {
            one.await.unwrap();
        }
        assert!(!written.is_finished(), "the device was busy");
    }
    // The connection is alive, and earlier requests get their responses.
    primary.client.capabilities(v1::CapabilitiesRequest::default()).await.unwrap();
    for stream in &mut streams {
        stream.message().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn packets_come_in_to_the_primary() {
    let server = server().await;
    let mut primary = server.ready().await;
    let (mut backup, _) = server.joined(0).await;
    let metadata = vec![(1, vec![0, 9].into())];
    let packet = Packet { payload: b"hello".to_vec(), metadata };
    server.events.send(Event::Packet(packet)).await.unwrap();
    let wanted = v1::PacketIn {
        payload: b"hello".to_vec(),
        metadata: vec![v1::PacketMetadata { metadata_id: 1, value: vec![9] }],
    };
    assert_eq!(primary.heard().await.unwrap(), Heard::Packet(wanted));
    drop(primary);
    assert_eq!(backup.standing().await.0, Code::NotFound, "and nothing before that");
}

fn digest(config: Option<v1::digest_entry::Config>, kind: update::Type) -> v1::Update {
    let entry = v1::DigestEntry { digest_id: DIGEST, config };
    update(kind, v1::entity::Entity::DigestEntry(entry))
}

fn learned(port: u8, mac: u8) -> Event {
    let mac = Data::Bits(vec![0, 0, 0, 0, 0, mac].into());
    let data = Data::Members(vec![Data::Bits(vec![0, port].into()), mac]);
    Event::Digest { id: DIGEST, data }
}

#[tokio::test]
async fn digests_are_sent_in_lists_and_acknowledged() {
    let server = server().await;
    let mut primary = server.ready().await;
    // The digest is not enabled yet.
    server.events.send(learned(1, 1)).await.unwrap();
    let config = v1::digest_entry::Config {
        max_timeout_ns: 20_000_000,
        max_list_size: 2,
        ack_timeout_ns: 3_600_000_000_000,
    };
    let off = (Code::NotFound, "digest `learned` is not enabled: insert it first".to_owned());
    for kind in [update::Type::Modify, update::Type::Delete] {
        assert_eq!(primary.write(digest(None, kind)).await.unwrap_err(), off);
    }
    for (wrong, what) in [
        (v1::digest_entry::Config { max_timeout_ns: -1, ..config }, "a negative time"),
        (v1::digest_entry::Config { ack_timeout_ns: -1, ..config }, "a negative time"),
        (v1::digest_entry::Config { max_list_size: -1, ..config }, "a negative size of lists"),
    ] {
        let refused = primary.write(digest(Some(wrong), update::Type::Insert)).await;
        let wanted = (Code::InvalidArgument, format!("`learned`: {what}"));
        assert_eq!(refused.unwrap_err(), wanted);
    }
    primary.write(digest(Some(config), update::Type::Insert)).await.unwrap();
    let again = primary.write(digest(Some(config), update::Type::Insert)).await;
    let on = (Code::AlreadyExists, "digest `learned` is already enabled".to_owned());
    assert_eq!(again.unwrap_err(), on);

    for mac in [1, 1, 2, 3] {
        server.events.send(learned(1, mac)).await.unwrap();
    }
    let list = |heard: Heard| match heard {
        Heard::Digest(list) => list,
        other => panic!("{other:?}"),
    };
    let first = list(primary.heard().await.unwrap());
    let bits = |bits: &[u8]| v1::P4Data { data: Some(p4_data::Data::Bitstring(bits.to_vec())) };
    let value = |mac: u8| {
        let members = vec![bits(&[1]), bits(&[mac])];
        v1::P4Data { data: Some(p4_data::Data::Tuple(v1::P4StructLike { members })) }
    };
    assert_eq!((first.digest_id, first.data), (DIGEST, vec![value(1), value(2)]));
    assert!(first.timestamp > 0);
    let second = list(primary.heard().await.unwrap());
    assert_eq!(second.data, [value(3)], "after 20 ms");

    let ack = v1::DigestListAck { digest_id: DIGEST, list_id: first.list_id };
    primary.say(Say::DigestAck(ack)).await;
    primary.say(Say::DigestAck(ack)).await;
    assert_eq!(Code::from(error(primary.heard().await).canonical_code), Code::NotFound, "once");
    for mac in [3, 1] {
        server.events.send(learned(1, mac)).await.unwrap();
    }
    assert_eq!(list(primary.heard().await.unwrap()).data, [value(1)], "3 was not acknowledged");

    let asked = v1::entity::Entity::DigestEntry(v1::DigestEntry::default());
    let read = primary.read(vec![entity(asked)]).await.unwrap();
    let entry = v1::DigestEntry { digest_id: DIGEST, config: Some(config) };
    assert_eq!(read, [entity(v1::entity::Entity::DigestEntry(entry))]);
    primary.write(digest(None, update::Type::Delete)).await.unwrap();
    server.events.send(learned(1, 9)).await.unwrap();
    let asked = v1::entity::Entity::DigestEntry(v1::DigestEntry::default());
    assert_eq!(primary.read(vec![entity(asked)]).await.unwrap(), []);
}

/// More than the queue and all network windows hold.
const FLOOD: usize = 4 * QUEUE;

/// Large packets, because the client's own library limits the number of small frames.
async fn flood(server: &Server) {
    for _ in 0..FLOOD {
        let packet = Packet { payload: vec![0; 4096], metadata: Vec::new() };
        server.events.send(Event::Packet(packet)).await.unwrap();
    }
}

#[tokio::test]
async fn packets_are_dropped_and_counted_without_a_reader() {
    let server = server().await;
    let mut primary = server.ready().await;
    flood(&server).await;
    // Other requests are not blocked.
    primary.write(insert(all_kinds(1))).await.unwrap();
    let (mut packets, mut told) = (0, 0);
    while packets + told < FLOOD {
        match primary.heard().await {
            Ok(Heard::Packet(_)) => packets += 1,
            Ok(Heard::Error(error)) => {
                assert_eq!(Code::from(error.canonical_code), Code::ResourceExhausted);
                told += error.message.split(' ').next().unwrap().parse::<usize>().unwrap();
            }
            other => panic!("{other:?}"),
        }
        if told == 0 && packets + QUEUE / 8 >= QUEUE / 2 {
            // There is room again: the next message carries the number of drops.
            let packet = Packet { payload: b"last".to_vec(), metadata: Vec::new() };
            let _ = server.events.try_send(Event::Packet(packet));
        }
    }
    assert!(told > 0 && packets > QUEUE / 2, "{packets} came, {told} were dropped");
}

#[tokio::test]
async fn a_client_that_reads_nothing_gets_an_error_and_is_disconnected() {
    let server = server().await;
    let mut primary = server.ready().await;
    let (mut backup, _) = server.joined(0).await;
    flood(&server).await;
    // Error reports for these eventually fill the queue.
    let metadata = vec![v1::PacketMetadata { metadata_id: 7, value: vec![0; 8192] }];
    let bad = v1::PacketOut { payload: Vec::new(), metadata };
    let out = primary.out.clone();
    // Blocks forever once the server stops reading.
    let talk = tokio::spawn(async move {
        for _ in 0..FLOOD {
            let message = v1::StreamMessageRequest { update: Some(Say::Packet(bad.clone())) };
            let _ = out.send(message).await;
        }
    });
    assert_eq!(backup.standing().await.0, Code::NotFound, "no primary any more");
    talk.abort();
    let ended = loop {
        if let Err(status) = primary.heard().await {
            break status;
        }
    };
    assert_eq!(ended.code(), Code::ResourceExhausted, "{ended:?}");
    assert!(ended.message().contains("too slowly"), "{ended:?}");
}

/// A client disconnects without ending its stream.
#[tokio::test]
async fn a_primary_that_dies_loses_its_role() {
    let server = server().await;
    let (mut backup, _) = server.joined(0).await;
    let address = server.address;
    let (dead, alive) = tokio::sync::oneshot::channel::<()>();
    // Dropping the runtime drops all of its tasks and sockets.
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let url = format!("http://{address}");
            let client = v1::p4_runtime_client::P4RuntimeClient::connect(url).await;
            let (out, requests) = tokio::sync::mpsc::channel(1);
            let requests = tokio_stream::wrappers::ReceiverStream::new(requests);
            let mut stream = client.unwrap().stream_channel(requests).await.unwrap().into_inner();
            let update = v1::MasterArbitrationUpdate {
                device_id: DEVICE,
                election_id: Some(id(5)),
                ..Default::default()
            };
            let update = Some(Say::Arbitration(update));
            out.send(v1::StreamMessageRequest { update }).await.unwrap();
            stream.message().await.unwrap().unwrap();
            let _ = dead.send(());
            stream.message().await.unwrap();
        });
    });
    alive.await.unwrap();
    assert_eq!(backup.standing().await, (Code::AlreadyExists, Some(5)));
    let (_higher, code) = server.joined(6).await;
    assert_eq!(code, Code::Ok);
    thread.join().unwrap();
    assert_eq!(backup.standing().await, (Code::AlreadyExists, Some(6)));
}

#[tokio::test]
async fn a_server_ends_when_its_device_has_panicked() {
    let mut server = server().await;
    let primary = server.ready().await;
    primary.say(packet_out(b"panic", &[1])).await;
    let ended = server.serving.take().unwrap();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(10), ended).await;
    let ended = ended.expect("it goes on").unwrap();
    assert_eq!(ended.unwrap_err().to_string(), "the thread of device 7 has panicked");
}
