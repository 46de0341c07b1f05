//! A client of P4Runtime.

use std::time::Duration;

use anyhow::{Error, anyhow};
use p4info::v1::P4Info;
use p4runtime::v1::entity::Entity;
use p4runtime::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime::v1::{
    self, get_forwarding_pipeline_config_request::ResponseType, stream_message_request,
    stream_message_response,
};
use p4runtime::{Address, LARGEST_MESSAGE, Pipeline};
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use crate::cli::{P4Device, P4Writer};
use crate::failure::Failure;

/// Timeout for an answer of the device.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A device, and the P4Info of its program.
pub(super) struct Client {
    inner: P4RuntimeClient<Channel>,
    device: u64,
    pub(super) pipeline: Pipeline,
    pub(super) info: P4Info,
}

/// Returns the error of the only update in a batch.
fn of_update(status: &Status) -> Option<(Code, String)> {
    let details = p4runtime::rpc::Status::decode(status.details()).ok()?;
    let error = details.details.iter().find_map(|any| v1::Error::decode(&*any.value).ok())?;
    Some((Code::from(error.canonical_code), error.message))
}

/// Settings to check if a connection fails before the first answer.
fn check(address: &Address) -> &'static str {
    match address {
        Address::Unix(_) => "start `kaido p4 run`, or set `--address` to its socket",
        Address::Insecure(_) => {
            "check that `kaido p4 run` serves P4Runtime there without TLS (`--insecure-tcp`); a server \
             with TLS needs `--tls-cert`, `--tls-key` and `--tls-ca` here too"
        }
        Address::Tls { .. } => {
            "check that the server uses TLS too, that the certificates of both sides come from the \
             other side's `--tls-ca`, and that the server's is for `--tls-name`, or else the host"
        }
    }
}

/// Converts the error of a device, or of the connection to it.
fn failure(status: &Status) -> Failure {
    let whole = || (status.code(), status.message().to_owned());
    let (code, text) = of_update(status).unwrap_or_else(whole);
    // Only errors of the transport have a source.
    let error = match std::error::Error::source(status) {
        Some(_) => Error::new(status.clone()).context("the connection to the server has ended"),
        None => anyhow!("{text}"),
    };
    match code {
        Code::InvalidArgument | Code::NotFound | Code::AlreadyExists | Code::OutOfRange => {
            Failure::usage(error)
        }
        _ => Failure::failed(error),
    }
}

impl Client {
    /// Connects, and reads the P4Info of the running program.
    pub(super) async fn connect(to: &P4Device) -> Result<Self, Failure> {
        let (address, shown) = super::super::socket::find(to)?;
        let help = check(&address);
        let unreachable = |why: Error| {
            let why = why.context(format!("cannot connect to P4Runtime at {shown}"));
            Failure::failed(anyhow!("{}; {help}", Failure::failed(why).text()))
        };
        let channel = p4runtime::connect(address, TIMEOUT).await;
        let channel = channel.map_err(|why| unreachable(why.into()))?;
        let mut inner = P4RuntimeClient::new(channel)
            .max_decoding_message_size(LARGEST_MESSAGE)
            .max_encoding_message_size(LARGEST_MESSAGE);
        let request = v1::GetForwardingPipelineConfigRequest {
            device_id: to.device_id,
            response_type: ResponseType::P4infoAndCookie.into(),
        };
        let answer = inner.get_forwarding_pipeline_config(request).await;
        // A server that expects TLS accepts the connection, and closes it at the first request.
        let failed = |status: Status| match std::error::Error::source(&status) {
            Some(_) => unreachable(status.into()),
            // The socket of another service of Kaido.
            None if status.code() == Code::Unimplemented => {
                Failure::usage(anyhow!("{shown} is not an address of P4Runtime; {help}"))
            }
            None => failure(&status),
        };
        let config = answer.map_err(failed)?.into_inner().config;
        let none = || Failure::failed(anyhow!("no program runs on device {}", to.device_id));
        let info = config.and_then(|config| config.p4info).ok_or_else(none)?;
        let pipeline = Pipeline::new(&info).map_err(Failure::failed)?;
        Ok(Self { inner, device: to.device_id, pipeline, info })
    }

    /// Reads all entries of a table, or of all tables if `table` is 0; default actions if
    /// requested.
    pub(super) async fn entries(
        &mut self,
        table: u32,
        is_default_action: bool,
    ) -> Result<Vec<v1::TableEntry>, Failure> {
        let entry = v1::TableEntry { table_id: table, is_default_action, ..Default::default() };
        let found = self.read(Entity::TableEntry(entry)).await?;
        let entry = |entity| match entity {
            Entity::TableEntry(entry) => Some(entry),
            _ => None,
        };
        Ok(found.into_iter().filter_map(entry).collect())
    }

    /// Reads all entities that match one.
    pub(super) async fn read(&mut self, entity: Entity) -> Result<Vec<Entity>, Failure> {
        let entity = v1::Entity { entity: Some(entity) };
        let (device_id, entities) = (self.device, vec![entity]);
        let request = v1::ReadRequest { device_id, entities, ..Default::default() };
        let answer = self.inner.read(request).await.map_err(|status| failure(&status))?;
        let mut stream = answer.into_inner();
        let mut all = Vec::new();
        while let Some(part) = stream.message().await.map_err(|status| failure(&status))? {
            all.extend(part.entities.into_iter().filter_map(|entity| entity.entity));
        }
        Ok(all)
    }

    /// Writes an entity; fails if another client is primary.
    pub(super) async fn write(
        &mut self,
        writer: &P4Writer,
        kind: v1::update::Type,
        entity: Entity,
    ) -> Result<(), Failure> {
        let primary = self.primary(writer).await?;
        self.update(&primary, kind, entity).await.map_err(|status| failure(&status))
    }

    /// Becomes primary; fails if another client is.
    pub(super) async fn primary(&mut self, writer: &P4Writer) -> Result<Primary, Failure> {
        let id = writer.election_id;
        let election =
            v1::Uint128 { high: (id >> 64) as u64, low: (id & u128::from(u64::MAX)) as u64 };
        let arbitration = v1::MasterArbitrationUpdate {
            device_id: self.device,
            election_id: Some(election),
            ..Default::default()
        };
        let update = stream_message_request::Update::Arbitration(arbitration);
        let (out, requests) = mpsc::channel(1);
        let _ = out.send(v1::StreamMessageRequest { update: Some(update) }).await;
        let stream = self.inner.stream_channel(ReceiverStream::new(requests)).await;
        let taken = |status: Status| match status.code() {
            Code::InvalidArgument => Failure::failed(anyhow!(
                "another client has the election id {id}, so nothing was written; \
                 `--election-id` takes another one"
            )),
            _ => failure(&status),
        };
        let mut stream = stream.map_err(taken)?.into_inner();
        let silent = || Failure::failed(anyhow!("the device ends the stream without an answer"));
        let standing = stream.message().await.map_err(taken)?.ok_or_else(silent)?.update;
        let Some(stream_message_response::Update::Arbitration(standing)) = standing else {
            return Err(Failure::failed(anyhow!("the device answers something else")));
        };
        if standing.status.is_none_or(|status| status.code != 0) {
            let highest =
                standing.election_id.map_or(0, |id| u128::from(id.high) << 64 | u128::from(id.low));
            return Err(Failure::failed(anyhow!(
                "nothing was written: a controller with the election id {highest} is primary, or was \
                 and may come back, and this command is only a backup with {id}; \
                 `--election-id {}` takes the role from it",
                highest.saturating_add(1)
            )));
        }
        Ok(Primary { election, out, stream })
    }

    /// Writes an entity as the primary.
    pub(super) async fn update(
        &mut self,
        primary: &Primary,
        kind: v1::update::Type,
        entity: Entity,
    ) -> Result<(), Status> {
        let entity = v1::Entity { entity: Some(entity) };
        let update = v1::Update { r#type: kind.into(), entity: Some(entity) };
        let request = v1::WriteRequest {
            device_id: self.device,
            election_id: Some(primary.election),
            updates: vec![update],
            ..Default::default()
        };
        self.inner.write(request).await.map(drop)
    }

    /// Returns the error code of a single update.
    pub(super) fn code(status: &Status) -> Code {
        of_update(status).map_or(status.code(), |(code, _)| code)
    }

    /// Converts the error of an update to a message.
    pub(super) fn failure(status: &Status) -> Failure {
        failure(status)
    }
}

/// The primary role. It lasts as long as the stream, which ends on drop.
pub(super) struct Primary {
    election: v1::Uint128,
    out: mpsc::Sender<v1::StreamMessageRequest>,
    stream: Streaming<v1::StreamMessageResponse>,
}

impl Primary {
    /// Returns the next message of the device.
    pub(super) async fn next(&mut self) -> Result<stream_message_response::Update, Failure> {
        let over = || Failure::failed(anyhow!("the device ends the stream"));
        loop {
            let message = self.stream.message().await.map_err(|status| failure(&status))?;
            if let Some(update) = message.ok_or_else(over)?.update {
                return Ok(update);
            }
        }
    }

    /// Sends a message to the device. Ignores errors: `next` reports a device that has gone.
    pub(super) async fn send(&self, update: stream_message_request::Update) {
        let _ = self.out.send(v1::StreamMessageRequest { update: Some(update) }).await;
    }
}
