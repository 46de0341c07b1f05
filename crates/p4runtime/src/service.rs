//! gRPC service: dispatches each request to the device's thread and returns the response.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use grpc_bounds::{Budget, Caller as _, HeldUntilSent, Reservation};
use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming};

use crate::arbitration::{default_role, from_message};
use crate::device::{Device, Refused};
use crate::error::{Error, RequestError};
use crate::handle::{By, Handle};
use crate::peer::{LARGEST_MESSAGE, OTHERS_ANSWERS, PRIMARIES_ANSWERS, Peer};
use crate::read_memory::ReadMemory;
use crate::readers::Readers;
use crate::reading::{ReadOutcome, Reading};
use crate::reply;
use crate::results::Results;
use crate::stream::{self, Answers};
use crate::v1::{self, p4_runtime_server::P4Runtime, p4_runtime_server::P4RuntimeServer};

/// P4Runtime version reported to clients.
pub const VERSION: &str = "1.5.0";

/// Devices by id.
pub struct Service<D: Device> {
    devices: Arc<BTreeMap<u64, Handle<D>>>,
    readers: Readers,
    /// Memory for answers that have not been sent.
    answers: Budget,
    /// Time after which an answer that is not read is dropped, if it is not the default.
    pub(crate) waits: Option<Duration>,
    /// Device with a panicked thread.
    pub(crate) panicked: watch::Receiver<Option<u64>>,
}

impl<D: Device> Service<D> {
    /// Starts a thread for each device. Requires a tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if a thread cannot be started.
    pub fn new(devices: impl IntoIterator<Item = (u64, D)>) -> std::io::Result<Self> {
        let devices = devices.into_iter();
        let (tell, panicked) = watch::channel(None);
        let devices =
            devices.map(|(id, device)| Ok((id, Handle::start(id, device, tell.clone())?)));
        let devices = Arc::new(devices.collect::<std::io::Result<_>>()?);
        let answers = Budget::new(PRIMARIES_ANSWERS, OTHERS_ANSWERS);
        Ok(Self { devices, readers: Readers::new(), answers, waits: None, panicked })
    }

    /// Sets the time after which an answer that its client does not read is dropped, 60 s by
    /// default.
    #[must_use]
    pub fn reader_waits(self, waits: Duration) -> Self {
        Self { waits: Some(waits), ..self }
    }

    /// Installs a program before any client does, with updates already applied.
    ///
    /// # Errors
    ///
    /// Returns the error that the primary would get.
    pub async fn begin(
        &self,
        device: u64,
        config: v1::ForwardingPipelineConfig,
        updates: Vec<v1::Update>,
    ) -> Result<(), Error> {
        let begin = move |core: &mut crate::core::Core<D>| core.begin(config, &updates);
        let done = self.device(device)?.run(By::Primary, begin).await;
        done.map_err(|why| Error::Device(Refused::Away(why.message().to_owned())))?
    }

    /// Wraps the service for a server, with message limits.
    pub(crate) fn server(self) -> P4RuntimeServer<Self> {
        P4RuntimeServer::new(self)
            // Most clients have smaller limits (`peer.rs`), enforced before any byte is read.
            .max_decoding_message_size(LARGEST_MESSAGE)
            // A config is returned unchanged, with additional framing.
            .max_encoding_message_size(LARGEST_MESSAGE + 1024)
    }

    fn device(&self, id: u64) -> Result<&Handle<D>, Error> {
        let none = || Error::Request(RequestError::no_device(id, &self.devices));
        self.devices.get(&id).ok_or_else(none)
    }
}

/// Splits a request into its connection, its memory reservation and its message.
fn parts<T>(request: Request<T>) -> (Peer, Option<Reservation>, T) {
    let reservation = request.extensions().get().cloned();
    (Peer::of(request.extensions()), reservation, request.into_inner())
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
        let (peer, reservation, request) = parts(request);
        let device = self.device(request.device_id)?;
        default_role(&request.role, request.role_id)?;
        let together = match v1::write_request::Atomicity::try_from(request.atomicity) {
            Ok(v1::write_request::Atomicity::ContinueOnError) => false,
            // A rolled-back update has never been applied to the device.
            Ok(_) => true,
            Err(_) => return Err(Error::Request(RequestError::Unspecified("atomicity")).into()),
        };
        let election = from_message(request.election_id.as_ref());
        let updates = request.updates;
        let write = move |core: &mut crate::core::Core<D>| {
            let answers = core.write(election, &updates, together);
            // Updates of a disconnected client are freed here; their memory is reserved until then.
            drop((updates, reservation));
            answers
        };
        let answers = device.run(By::peer(&peer, request.device_id), write).await??;
        reply::batch(&answers)?;
        Ok(Response::new(v1::WriteResponse {}))
    }

    async fn read(
        &self,
        request: Request<v1::ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let (peer, reservation, request) = parts(request);
        let device = self.device(request.device_id)?;
        default_role(&request.role, 0)?;
        let by = By::peer(&peer, request.device_id);
        let place = self.readers.place(by, &peer).await?;
        let answer = self.answers.empty_reservation();
        let memory = ReadMemory::new(answer.clone(), by.is_primary());
        let reading = Reading::new(request.entities, memory, reservation);
        let read = device.read(by, reading).await;
        let ReadOutcome { pipeline, found, results } = read?;
        let results = Results::new(pipeline, found, results);
        let results: Self::ReadStream = Box::pin(tokio_stream::iter(results));
        let mut response = Response::new(results);
        response.extensions_mut().insert::<Reservation>(answer);
        response.extensions_mut().insert(HeldUntilSent::new(place));
        Ok(response)
    }

    #[expect(deprecated, reason = "clients still use it")]
    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<v1::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::SetForwardingPipelineConfigResponse>, Status> {
        let (peer, reservation, request) = parts(request);
        let device = self.device(request.device_id)?;
        default_role(&request.role, request.role_id)?;
        let (action, election) = (request.action(), from_message(request.election_id.as_ref()));
        let config = request.config;
        let set = move |core: &mut crate::core::Core<D>| {
            let done = core.set_program(election, action, config);
            drop(reservation);
            done
        };
        device.run(By::peer(&peer, request.device_id), set).await??;
        Ok(Response::new(v1::SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<v1::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::GetForwardingPipelineConfigResponse>, Status> {
        use v1::get_forwarding_pipeline_config_request::ResponseType;
        let (peer, _, request) = parts(request);
        let device = self.device(request.device_id)?;
        let parts = ResponseType::try_from(request.response_type);
        let parts =
            parts.map_err(|_| Error::Request(RequestError::Unspecified("response type")))?;
        let (answers, by) = (self.answers.clone(), By::peer(&peer, request.device_id));
        let get = move |core: &mut crate::core::Core<D>| {
            core.get_program(parts, &answers, by.is_primary())
        };
        let found = device.run(by, get).await??;
        let (config, reservation) = found.unzip();
        let mut answer = Response::new(v1::GetForwardingPipelineConfigResponse { config });
        if let Some(reservation) = reservation {
            answer.extensions_mut().insert::<Reservation>(reservation);
        }
        Ok(answer)
    }

    async fn stream_channel(
        &self,
        request: Request<Streaming<v1::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let (peer, _, inbound) = parts(request);
        Ok(Response::new(stream::open(Arc::clone(&self.devices), peer, inbound)))
    }
}
