//! A service on a loopback port with an in-memory device, and clients.

pub(crate) mod device;
pub(crate) mod unread;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use device::{Memory, Shared};
use p4info::v1 as info;
use p4runtime::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime::v1::set_forwarding_pipeline_config_request::Action;
use p4runtime::v1::{self, stream_message_request, stream_message_response};
use p4runtime::{Event, LARGEST_MESSAGE, Service};
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

/// Device id used by the tests.
pub(crate) const DEVICE: u64 = 7;
/// Another device of the server, without a program.
pub(crate) const OTHER_DEVICE: u64 = 9;

pub(crate) const ALL: u32 = 0x0200_0001;
pub(crate) const ROUTE: u32 = 0x0200_0002;
pub(crate) const NOTHING: u32 = 0x0200_0003;
pub(crate) const FIXED: u32 = 0x0200_0004;
pub(crate) const SET: u32 = 0x0100_0001;
pub(crate) const DROP: u32 = 0x0100_0002;
pub(crate) const COUNT: u32 = 0x0100_0003;
pub(crate) const NO_ACTION: u32 = 0x0100_0004;
pub(crate) const COUNTER: u32 = 0x1200_0001;
pub(crate) const METER: u32 = 0x1400_0001;
pub(crate) const DIGEST: u32 = 0x1700_0001;
pub(crate) const SEEN: u32 = 0x1600_0001;
pub(crate) const BALANCE: u32 = 0x1600_0002;
pub(crate) const KNOWN: u32 = 0x0300_0001;

/// The p4info of a program.
pub(crate) fn info_of(program: &str) -> info::P4Info {
    let checked = p4::check("test.p4", program, &p4::NoIncludes);
    let said = checked.diagnostics.render(&checked.sources, false);
    assert!(!checked.diagnostics.has_errors(), "{said}");
    p4info::info(&checked.program).unwrap()
}

/// The p4info of `kinds.p4` with simple ids, plus counters, meters, digests and packet metadata,
/// which the program does not have.
pub(crate) fn kinds() -> info::P4Info {
    let mut info = info_of(include_str!("kinds.p4"));
    let plain = |name: &str| match name {
        "c.all" => ALL,
        "c.route" => ROUTE,
        "c.nothing" => NOTHING,
        "c.fixed" => FIXED,
        "c.set" => SET,
        "c.drop" => DROP,
        "c.count" => COUNT,
        "NoAction" => NO_ACTION,
        "c.seen" => SEEN,
        "c.balance" => BALANCE,
        _ => KNOWN,
    };
    let mut ids = std::collections::BTreeMap::new();
    let mut rename = |one: &mut Option<info::Preamble>| {
        let one = one.as_mut().unwrap();
        let id = plain(&one.name);
        ids.insert(one.id, id);
        one.id = id;
    };
    info.actions.iter_mut().for_each(|one| rename(&mut one.preamble));
    info.tables.iter_mut().for_each(|one| rename(&mut one.preamble));
    info.registers.iter_mut().for_each(|one| rename(&mut one.preamble));
    info.value_sets.iter_mut().for_each(|one| rename(&mut one.preamble));
    for table in &mut info.tables {
        table.action_refs.iter_mut().for_each(|one| one.id = ids[&one.id]);
        if table.const_default_action_id != 0 {
            table.const_default_action_id = ids[&table.const_default_action_id];
        }
        if let Some(call) = &mut table.initial_default_action {
            call.action_id = ids[&call.action_id];
        }
    }
    add_resources(&mut info, ALL);
    info
}

fn named(id: u32, name: &str) -> Option<info::Preamble> {
    Some(info::Preamble { id, name: name.into(), alias: name.into(), ..Default::default() })
}

/// Adds counters and meters for a table, a digest, and packet metadata.
pub(crate) fn add_resources(info: &mut info::P4Info, table: u32) {
    let both = info::CounterSpec { unit: info::counter_spec::Unit::Both.into() };
    let bytes = info::MeterSpec {
        unit: info::meter_spec::Unit::Bytes.into(),
        ..info::MeterSpec::default()
    };
    let counter = named(COUNTER, "c.counted");
    info.counters.push(info::Counter {
        preamble: counter,
        spec: Some(both),
        size: 16,
        ..Default::default()
    });
    let meter = named(METER, "c.metered");
    info.meters.push(info::Meter {
        preamble: meter,
        spec: Some(bytes),
        size: 4,
        ..Default::default()
    });
    info.direct_counters.push(info::DirectCounter {
        preamble: named(0x1300_0001, "c.entries_counted"),
        spec: Some(both),
        direct_table_id: table,
    });
    info.direct_meters.push(info::DirectMeter {
        preamble: named(0x1500_0001, "c.entries_metered"),
        spec: Some(bytes),
        direct_table_id: table,
    });
    for one in &mut info.tables {
        if one.preamble.as_ref().unwrap().id == table {
            one.direct_resource_ids = vec![0x1300_0001, 0x1500_0001];
        }
    }
    let bit = |bitwidth| {
        use info::p4_bitstring_like_type_spec::TypeSpec as Bits;
        let bits = Bits::Bit(info::P4BitTypeSpec { bitwidth });
        let spec = info::P4BitstringLikeTypeSpec { type_spec: Some(bits), ..Default::default() };
        let spec = info::p4_data_type_spec::TypeSpec::Bitstring(spec);
        info::P4DataTypeSpec { type_spec: Some(spec) }
    };
    info.digests.push(info::Digest {
        preamble: named(DIGEST, "learned"),
        type_spec: Some(info::P4DataTypeSpec {
            type_spec: Some(info::p4_data_type_spec::TypeSpec::Tuple(info::P4TupleTypeSpec {
                members: vec![bit(9), bit(48)],
            })),
        }),
    });
    for (id, name) in [(0x0400_0001, "packet_out"), (0x0400_0002, "packet_in")] {
        let metadata = info::controller_packet_metadata::Metadata {
            id: 1,
            name: "port".into(),
            bitwidth: 9,
            ..Default::default()
        };
        info.controller_packet_metadata.push(info::ControllerPacketMetadata {
            preamble: named(id, name),
            metadata: vec![metadata],
        });
    }
}

/// A service, its device, and the sender of the device's events.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) device: Arc<Mutex<Shared>>,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) serving: Option<tokio::task::JoinHandle<Result<(), p4runtime::Ended>>>,
    _stop: oneshot::Sender<()>,
}

pub(crate) async fn server() -> Server {
    server_with(|service| service).await
}

/// A server whose service has other settings.
pub(crate) async fn server_with(set: impl FnOnce(Service<Memory>) -> Service<Memory>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (memory, device, events) = Memory::new();
    let devices = [(DEVICE, memory), (OTHER_DEVICE, Memory::new().0)];
    let service = set(Service::new(devices).unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(p4runtime::serve(service, listener, async {
        let _ = stopped.await;
    }));
    Server { address, device, events, serving: Some(serving), _stop: stop }
}

impl Server {
    pub(crate) fn device(&self) -> MutexGuard<'_, Shared> {
        self.device.lock().unwrap()
    }

    pub(crate) async fn client(&self) -> P4RuntimeClient<Channel> {
        let client = P4RuntimeClient::connect(format!("http://{}", self.address)).await.unwrap();
        client.max_encoding_message_size(2 * LARGEST_MESSAGE)
    }

    /// A connection whose streams have no flow-control window: the client takes no byte of any
    /// answer.
    pub(crate) async fn closed_channel(&self) -> Channel {
        let endpoint = Channel::from_shared(format!("http://{}", self.address)).unwrap();
        endpoint.initial_stream_window_size(0).connect().await.unwrap()
    }

    /// Opens a stream without sending anything.
    pub(crate) async fn silent(&self) -> Controller {
        let mut client = self.client().await;
        let (out, requests) = mpsc::channel(64);
        let stream = client.stream_channel(ReceiverStream::new(requests)).await.unwrap();
        Controller { client, out, stream: stream.into_inner(), election: None }
    }

    /// A client that has joined the election, and its status.
    pub(crate) async fn joined(&self, election: u128) -> (Controller, Code) {
        let mut one = self.silent().await;
        one.arbitrate(Some(election)).await;
        let code = one.standing().await.0;
        (one, code)
    }

    pub(crate) async fn primary(&self) -> Controller {
        let (one, code) = self.joined(1).await;
        assert_eq!(code, Code::Ok);
        one
    }

    /// A primary with `kinds.p4` installed.
    pub(crate) async fn ready(&self) -> Controller {
        let mut one = self.primary().await;
        one.set(Action::VerifyAndCommit, Some(config(kinds()))).await.unwrap();
        one
    }
}

pub(crate) struct Controller {
    pub(crate) client: P4RuntimeClient<Channel>,
    pub(crate) out: mpsc::Sender<v1::StreamMessageRequest>,
    pub(crate) stream: Streaming<v1::StreamMessageResponse>,
    pub(crate) election: Option<v1::Uint128>,
}

pub(crate) fn config(info: info::P4Info) -> v1::ForwardingPipelineConfig {
    v1::ForwardingPipelineConfig {
        p4info: Some(info),
        p4_device_config: b"program".to_vec(),
        cookie: Some(v1::forwarding_pipeline_config::Cookie { cookie: 99 }),
    }
}

pub(crate) fn id(election: u128) -> v1::Uint128 {
    v1::Uint128 { high: (election >> 64) as u64, low: election as u64 }
}

impl Controller {
    pub(crate) async fn say(&self, update: stream_message_request::Update) {
        self.out.send(v1::StreamMessageRequest { update: Some(update) }).await.unwrap();
    }

    pub(crate) async fn arbitrate(&mut self, election: Option<u128>) {
        self.arbitrate_for(DEVICE, election).await;
    }

    pub(crate) async fn arbitrate_for(&mut self, device_id: u64, election: Option<u128>) {
        self.election = election.map(id);
        let update = v1::MasterArbitrationUpdate {
            device_id,
            election_id: self.election,
            ..Default::default()
        };
        self.say(stream_message_request::Update::Arbitration(update)).await;
    }

    /// The next stream message.
    pub(crate) async fn heard(&mut self) -> Result<stream_message_response::Update, Status> {
        let next = tokio::time::timeout(Duration::from_secs(10), self.stream.message());
        let next = next.await.expect("nothing within 10 s")?;
        next.and_then(|next| next.update).ok_or_else(|| Status::cancelled("the stream has ended"))
    }

    /// Status and highest election id of the next message, which has to be an arbitration update.
    pub(crate) async fn standing(&mut self) -> (Code, Option<u128>) {
        match self.heard().await.unwrap() {
            stream_message_response::Update::Arbitration(update) => {
                assert_eq!(update.device_id, DEVICE);
                let highest = update.election_id;
                let highest = highest.map(|id| u128::from(id.high) << 64 | u128::from(id.low));
                (Code::from(update.status.unwrap().code), highest)
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn set(
        &mut self,
        action: Action,
        config: Option<v1::ForwardingPipelineConfig>,
    ) -> Result<(), Status> {
        let request = v1::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: self.election,
            action: action.into(),
            config,
            ..Default::default()
        };
        self.client.set_forwarding_pipeline_config(request).await.map(drop)
    }

    pub(crate) async fn write_all(
        &mut self,
        updates: Vec<v1::Update>,
        atomicity: v1::write_request::Atomicity,
    ) -> Result<(), Status> {
        let request = v1::WriteRequest {
            device_id: DEVICE,
            election_id: self.election,
            updates,
            atomicity: atomicity.into(),
            ..Default::default()
        };
        self.client.write(request).await.map(drop)
    }

    /// Writes one update and returns its result.
    pub(crate) async fn write(&mut self, update: v1::Update) -> Result<(), (Code, String)> {
        let written = self.write_all(vec![update], Default::default()).await;
        let Err(status) = written else { return Ok(()) };
        let errors = errors(&status);
        assert_eq!(errors.len(), 1, "{status:?}");
        let v1::Error { canonical_code, message, .. } = errors[0].clone();
        Err((Code::from(canonical_code), message))
    }

    pub(crate) async fn read(
        &mut self,
        entities: Vec<v1::Entity>,
    ) -> Result<Vec<v1::Entity>, Status> {
        let request = v1::ReadRequest { device_id: DEVICE, entities, ..Default::default() };
        let mut stream = self.client.read(request).await?.into_inner();
        let mut all = Vec::new();
        while let Some(one) = stream.message().await? {
            all.extend(one.entities);
        }
        Ok(all)
    }
}

/// Per-update errors in a status.
pub(crate) fn errors(status: &Status) -> Vec<v1::Error> {
    assert_eq!(status.code(), Code::Unknown, "{status:?}");
    let details = p4runtime::rpc::Status::decode(status.details()).unwrap();
    assert_eq!((details.code, &*details.message), (Code::Unknown as i32, status.message()));
    let error = |any: &prost_types::Any| {
        assert_eq!(any.type_url, "type.googleapis.com/p4.v1.Error");
        v1::Error::decode(&*any.value).unwrap()
    };
    details.details.iter().map(error).collect()
}

pub(crate) fn codes(status: &Status) -> Vec<Code> {
    errors(status).iter().map(|error| Code::from(error.canonical_code)).collect()
}

// ---- messages ----

pub(crate) fn entity(entity: v1::entity::Entity) -> v1::Entity {
    v1::Entity { entity: Some(entity) }
}

pub(crate) fn update(kind: v1::update::Type, of: v1::entity::Entity) -> v1::Update {
    v1::Update { r#type: kind.into(), entity: Some(entity(of)) }
}

pub(crate) fn action(id: u32, params: &[(u32, &[u8])]) -> Option<v1::TableAction> {
    let param =
        |(id, value): &(u32, &[u8])| v1::action::Param { param_id: *id, value: value.to_vec() };
    let params = params.iter().map(param).collect();
    let action = v1::Action { action_id: id, params };
    Some(v1::TableAction { r#type: Some(v1::table_action::Type::Action(action)) })
}

pub(crate) fn set(t: u8, e: u8) -> Option<v1::TableAction> {
    action(SET, &[(1, &[t]), (2, &[e])])
}

pub(crate) fn exact(field: u32, value: &[u8]) -> v1::FieldMatch {
    let exact = v1::field_match::Exact { value: value.to_vec() };
    matched(field, v1::field_match::FieldMatchType::Exact(exact))
}

pub(crate) fn lpm(field: u32, value: &[u8], prefix_len: i32) -> v1::FieldMatch {
    let lpm = v1::field_match::Lpm { value: value.to_vec(), prefix_len };
    matched(field, v1::field_match::FieldMatchType::Lpm(lpm))
}

pub(crate) fn ternary(field: u32, value: &[u8], mask: &[u8]) -> v1::FieldMatch {
    let ternary = v1::field_match::Ternary { value: value.to_vec(), mask: mask.to_vec() };
    matched(field, v1::field_match::FieldMatchType::Ternary(ternary))
}

pub(crate) fn range(field: u32, low: &[u8], high: &[u8]) -> v1::FieldMatch {
    let range = v1::field_match::Range { low: low.to_vec(), high: high.to_vec() };
    matched(field, v1::field_match::FieldMatchType::Range(range))
}

pub(crate) fn optional(field: u32, value: &[u8]) -> v1::FieldMatch {
    let optional = v1::field_match::Optional { value: value.to_vec() };
    matched(field, v1::field_match::FieldMatchType::Optional(optional))
}

fn matched(field_id: u32, of: v1::field_match::FieldMatchType) -> v1::FieldMatch {
    v1::FieldMatch { field_id, field_match_type: Some(of) }
}

/// An entry of the table with every match kind.
pub(crate) fn all_kinds(e: u8) -> v1::TableEntry {
    v1::TableEntry {
        table_id: ALL,
        r#match: vec![
            exact(1, &[e]),
            lpm(2, &[10, 0, 0, 0], 8),
            ternary(3, &[1, 0], &[1, 0xf0]),
            range(4, &[5], &[1, 0]),
            optional(5, &[6]),
        ],
        action: set(1, 2),
        priority: 10,
        ..Default::default()
    }
}

/// A route with a 32-bit prefix.
pub(crate) fn route(number: u32) -> v1::TableEntry {
    v1::TableEntry {
        table_id: ROUTE,
        r#match: vec![lpm(1, &number.to_be_bytes(), 32)],
        action: action(DROP, &[]),
        ..Default::default()
    }
}

pub(crate) fn insert(entry: v1::TableEntry) -> v1::Update {
    update(v1::update::Type::Insert, v1::entity::Entity::TableEntry(entry))
}

pub(crate) fn modify(entry: v1::TableEntry) -> v1::Update {
    update(v1::update::Type::Modify, v1::entity::Entity::TableEntry(entry))
}

pub(crate) fn delete(entry: v1::TableEntry) -> v1::Update {
    update(v1::update::Type::Delete, v1::entity::Entity::TableEntry(entry))
}
