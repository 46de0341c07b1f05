//! The gRPC face: look the device up, have it done there, answer.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tonic::{Request, Response, Status, Streaming};

use crate::arbitration::from_message;
use crate::core::Handle;
use crate::device::{Device, Refused};
use crate::error::Error;
use crate::incoming::Incoming;
use crate::pipeline::Pipeline;
use crate::read::Found;
use crate::reply;
use crate::stream::{self, Answers, Outbound};
use crate::v1::{self, p4_runtime_server::P4Runtime, p4_runtime_server::P4RuntimeServer};

/// The version of P4Runtime that clients are told.
pub const VERSION: &str = "1.5.0";

/// What one message from a client may be: a batch of a few 100,000 entries, or a program. A larger
/// one is refused before it is read.
pub const LARGEST_MESSAGE: usize = 64 << 20;

/// The bytes and entities of one answer to a read. Clients take 4 MiB if nobody tells them more.
const ANSWER_BYTES: usize = 1 << 20;
const ANSWER_ENTITIES: usize = 4096;

/// Reads at the same time. Each holds what it has found until it is sent.
const READERS: usize = 32;

/// How long a reader may read nothing.
const READER_WAITS: Duration = Duration::from_secs(60);

/// What one stream, and one connection, may send ahead of what is taken. HTTP/2's library closes a
/// connection whose small frames wait in too large a number, and takes half of the connection's window
/// as their measure, 256 bytes less its length for each. So one stream's window, full of the smallest
/// messages (5 bytes), must weigh less than half of the connection's: then a client waits.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 32 << 20;

/// Devices, each with its id.
pub struct Service<D: Device> {
    devices: Arc<BTreeMap<u64, Handle<D>>>,
    readers: Arc<Semaphore>,
    /// The device whose thread has ended by a panic.
    panicked: watch::Receiver<Option<u64>>,
}

/// Why a server has ended.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The transport has failed.
    #[error(transparent)]
    Transport(#[from] tonic::transport::Error),
    /// Nothing can be asked of this device any more.
    #[error("the thread of device {0} has panicked")]
    Panicked(u64),
}

impl<D: Device> Service<D> {
    /// Starts a thread for each device. Call it in a tokio runtime.
    ///
    /// # Errors
    ///
    /// If a thread does not start.
    pub fn new(devices: impl IntoIterator<Item = (u64, D)>) -> std::io::Result<Self> {
        let devices = devices.into_iter();
        let (tell, panicked) = watch::channel(None);
        let devices =
            devices.map(|(id, device)| Ok((id, Handle::start(id, device, tell.clone())?)));
        let devices = Arc::new(devices.collect::<std::io::Result<_>>()?);
        Ok(Self { devices, readers: Arc::new(Semaphore::new(READERS)), panicked })
    }

    /// Puts a program to work before any client does, with updates made to it already.
    ///
    /// # Errors
    ///
    /// What the primary would be told.
    pub async fn begin(
        &self,
        device: u64,
        config: v1::ForwardingPipelineConfig,
        updates: Vec<v1::Update>,
    ) -> Result<(), Error> {
        let begin = move |core: &mut crate::core::Core<D>| core.begin(config, &updates);
        let done = self.device(device)?.run(begin).await;
        done.map_err(|why| Error::Device(Refused::Away(why.message().to_owned())))?
    }

    /// The service with its limits, for a server.
    pub fn server(self) -> P4RuntimeServer<Self> {
        P4RuntimeServer::new(self)
            .max_decoding_message_size(LARGEST_MESSAGE)
            // A program is given back as it came, with its frame.
            .max_encoding_message_size(LARGEST_MESSAGE + 1024)
    }

    fn device(&self, id: u64) -> Result<&Handle<D>, Error> {
        self.devices.get(&id).ok_or(Error::NoDevice(id))
    }
}

/// Serves until `until` is ready. A connection that does not answer for 20 s is closed, so that a
/// primary that has died is none any more.
///
/// # Errors
///
/// If the transport fails, or a device's thread panics.
pub async fn serve<D: Device>(
    service: Service<D>,
    listener: TcpListener,
    until: impl Future<Output = ()>,
) -> Result<(), Ended> {
    let mut panicked = service.panicked.clone();
    let panicked = async {
        match panicked.wait_for(Option::is_some).await.ok().and_then(|one| *one) {
            Some(device) => device,
            None => std::future::pending().await,
        }
    };
    let served = tonic::transport::Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keepalive_interval(Some(Duration::from_secs(10)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .add_service(service.server())
        .serve_with_incoming_shutdown(Incoming::new(listener), until);
    tokio::select! {
        done = served => Ok(done?),
        device = panicked => Err(Ended::Panicked(device)),
    }
}

/// Fails for every role but the one that all clients have.
pub(crate) fn default_role(name: &str, id: u64) -> Result<(), Error> {
    match (name, id) {
        ("", 0) => Ok(()),
        ("", id) => Err(Error::NoRole(id.to_string())),
        (name, _) => Err(Error::NoRole(name.to_owned())),
    }
}

#[tonic::async_trait]
impl<D: Device> P4Runtime for Service<D> {
    type ReadStream = Answers<v1::ReadResponse>;
    type StreamChannelStream = Answers<v1::StreamMessageResponse>;

    async fn capabilities(
        &self,
        _: Request<v1::CapabilitiesRequest>,
    ) -> Result<Response<v1::CapabilitiesResponse>, Status> {
        Ok(Response::new(v1::CapabilitiesResponse {
            p4runtime_api_version: VERSION.into(),
            experimental: None,
        }))
    }

    #[expect(deprecated, reason = "clients still use it")]
    async fn write(
        &self,
        request: Request<v1::WriteRequest>,
    ) -> Result<Response<v1::WriteResponse>, Status> {
        let request = request.into_inner();
        let device = self.device(request.device_id)?;
        default_role(&request.role, request.role_id)?;
        let together = match v1::write_request::Atomicity::try_from(request.atomicity) {
            Ok(v1::write_request::Atomicity::ContinueOnError) => false,
            // What is rolled back was never done here.
            Ok(_) => true,
            Err(_) => return Err(Error::Unspecified("the atomicity").into()),
        };
        let election = from_message(request.election_id.as_ref());
        let updates = request.updates;
        let answers = device.run(move |core| core.write(election, &updates, together)).await??;
        reply::batch(&answers)?;
        Ok(Response::new(v1::WriteResponse {}))
    }

    async fn read(
        &self,
        request: Request<v1::ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let request = request.into_inner();
        let device = self.device(request.device_id)?;
        default_role(&request.role, 0)?;
        let readers = Arc::clone(&self.readers);
        let permit = readers.acquire_owned().await;
        let permit = permit.map_err(|_| Status::unavailable("the service is stopping"))?;
        let asked = request.entities;
        let read = device.run_asking(move |core, is_gone| core.read(&asked, is_gone)).await;
        let (pipeline, found, answers) = read??;
        let (out, messages) = mpsc::channel(2);
        let (end, ended) = oneshot::channel();
        tokio::spawn(async move {
            let _permit = permit;
            let sent = send(&out, &pipeline, found).await;
            if let Err(status) = sent.map_err(Status::from).and_then(|()| reply::batch(&answers)) {
                // A client that is gone hears nothing.
                let _ = end.send(status);
            }
        });
        Ok(Response::new(Box::pin(Outbound { messages, end: Some(ended) })))
    }

    #[expect(deprecated, reason = "clients still use it")]
    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<v1::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::SetForwardingPipelineConfigResponse>, Status> {
        let request = request.into_inner();
        let device = self.device(request.device_id)?;
        default_role(&request.role, request.role_id)?;
        let (action, election) = (request.action(), from_message(request.election_id.as_ref()));
        let config = request.config;
        device.run(move |core| core.set_program(election, action, config)).await??;
        Ok(Response::new(v1::SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<v1::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::GetForwardingPipelineConfigResponse>, Status> {
        use v1::get_forwarding_pipeline_config_request::ResponseType;
        let request = request.into_inner();
        let device = self.device(request.device_id)?;
        let parts = ResponseType::try_from(request.response_type);
        let parts = parts.map_err(|_| Error::Unspecified("the response type"))?;
        let config = device.run(move |core| core.get_program(parts)).await?;
        Ok(Response::new(v1::GetForwardingPipelineConfigResponse { config }))
    }

    async fn stream_channel(
        &self,
        request: Request<Streaming<v1::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        Ok(Response::new(stream::open(Arc::clone(&self.devices), request.into_inner())))
    }
}

/// Sends what was found, in messages that clients take.
async fn send(
    out: &mpsc::Sender<v1::ReadResponse>,
    pipeline: &Pipeline,
    found: Vec<Found>,
) -> Result<(), Error> {
    let mut found = found.into_iter().peekable();
    while found.peek().is_some() {
        let (mut entities, mut bytes) = (Vec::new(), 0);
        while bytes < ANSWER_BYTES
            && entities.len() < ANSWER_ENTITIES
            && let Some(one) = found.next()
        {
            let entity = reply::entity(pipeline, &one);
            bytes += entity.encoded_len();
            entities.push(entity);
        }
        let sent = out.send(v1::ReadResponse { entities });
        match tokio::time::timeout(READER_WAITS, sent).await {
            Ok(Ok(())) => {}
            // The client is gone.
            Ok(Err(_)) => return Ok(()),
            Err(_) => return Err(Error::SlowReader(READER_WAITS.as_secs())),
        }
    }
    Ok(())
}
