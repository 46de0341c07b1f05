//! The emulator's gRPC service.

use api::v1;
use api::v1::emulator_server::Emulator;
use emulator::{Nanos, Network};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::running::{Service, panicked, wait};
use crate::{capture, interfaces};

#[tonic::async_trait]
impl Emulator for Service {
    async fn check_emulator(
        &self,
        _: Request<v1::CheckEmulatorRequest>,
    ) -> Result<Response<v1::CheckEmulatorResponse>, Status> {
        let remote = self.remote.clone();
        wait(move || Ok(remote.with(|_, _| ())?)).await?;
        Ok(Response::new(v1::CheckEmulatorResponse {}))
    }

    async fn get_emulated_links(
        &self,
        _: Request<v1::GetEmulatedLinksRequest>,
    ) -> Result<Response<v1::GetEmulatedLinksResponse>, Status> {
        let service = self.clone();
        Ok(Response::new(wait(move || service.get()).await?))
    }

    async fn change_emulated_link(
        &self,
        request: Request<v1::ChangeEmulatedLinkRequest>,
    ) -> Result<Response<v1::ChangeEmulatedLinkResponse>, Status> {
        let service = self.clone();
        let directions = wait(move || service.change(request.get_ref())).await?;
        Ok(Response::new(v1::ChangeEmulatedLinkResponse { directions }))
    }

    async fn begin_traces(
        &self,
        request: Request<v1::BeginTracesRequest>,
    ) -> Result<Response<v1::BeginTracesResponse>, Status> {
        let (remote, at) = (self.remote.clone(), request.get_ref().at_ns);
        let begin = move |network: &mut Network, now: Nanos| network.begin(now, at.min(now));
        wait(move || Ok(remote.with(begin)?)).await?;
        Ok(Response::new(v1::BeginTracesResponse {}))
    }

    async fn add_cross_traffic(
        &self,
        request: Request<v1::AddCrossTrafficRequest>,
    ) -> Result<Response<v1::AddCrossTrafficResponse>, Status> {
        let service = self.clone();
        let direction = wait(move || service.add_traffic(request.into_inner())).await?;
        Ok(Response::new(v1::AddCrossTrafficResponse { direction: Some(direction) }))
    }

    async fn stop_cross_traffic(
        &self,
        request: Request<v1::StopCrossTrafficRequest>,
    ) -> Result<Response<v1::StopCrossTrafficResponse>, Status> {
        let service = self.clone();
        Ok(Response::new(wait(move || service.stop_traffic(request.get_ref())).await?))
    }

    type CaptureEmulatedLinkStream = ReceiverStream<Result<v1::CapturedFrames, Status>>;

    async fn capture_emulated_link(
        &self,
        request: Request<v1::CaptureEmulatedLinkRequest>,
    ) -> Result<Response<Self::CaptureEmulatedLinkStream>, Status> {
        let (sink, stream) = mpsc::channel(capture::WAITING);
        let (started, begun) = oneshot::channel();
        let (service, ending) = (self.clone(), self.ending.clone());
        // Run as a separate task, so that a cancelled call does not leave a tap.
        tokio::spawn(capture::run(service, request.into_inner(), started, sink, ending));
        begun.await.map_err(|_| panicked())??;
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    type WatchEmulatedInterfacesStream = ReceiverStream<Result<v1::EmulatedInterfaces, Status>>;

    async fn watch_emulated_interfaces(
        &self,
        request: Request<v1::WatchEmulatedInterfacesRequest>,
    ) -> Result<Response<Self::WatchEmulatedInterfacesStream>, Status> {
        let (sink, stream) = mpsc::channel(interfaces::WAITING);
        let (node, seen) = (request.into_inner().node, self.seen.subscribe());
        tokio::spawn(interfaces::tell(node, seen, sink, self.ending.clone()));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}
