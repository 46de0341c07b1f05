//! A controller that rejects every node.

use std::path::Path;
use std::pin::Pin;

use api::v1;
use api::v1::controller_server::{Controller, ControllerServer};
use serve::{Incoming, Limits};
use tokio::runtime::Runtime;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

/// A server that runs until it is dropped.
pub(crate) struct FakeController(#[expect(dead_code, reason = "its end is the server's")] Runtime);

impl FakeController {
    /// Starts the server, which rejects every session with this message.
    pub(crate) fn start(socket: &Path, refusal: &'static str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let _context = runtime.enter();
        let incoming = Incoming::unix(socket, Limits::new(16)).unwrap();
        let server = ControllerServer::new(Refusing(refusal));
        runtime.spawn(
            tonic::transport::Server::builder().add_service(server).serve_with_incoming(incoming),
        );
        drop(_context);
        Self(runtime)
    }
}

struct Refusing(&'static str);

type Nothing<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn unimplemented<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("it only refuses nodes"))
}

#[tonic::async_trait]
impl Controller for Refusing {
    type SessionStream = Nothing<v1::ToNode>;
    type WatchDecisionsStream = Nothing<v1::Decision>;

    async fn session(
        &self,
        _: Request<Streaming<v1::FromNode>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        Err(Status::failed_precondition(self.0))
    }

    async fn add_application(
        &self,
        _: Request<v1::AddApplicationRequest>,
    ) -> Result<Response<v1::AddApplicationResponse>, Status> {
        unimplemented()
    }

    async fn remove_application(
        &self,
        _: Request<v1::RemoveApplicationRequest>,
    ) -> Result<Response<v1::RemoveApplicationResponse>, Status> {
        unimplemented()
    }

    async fn list_applications(
        &self,
        _: Request<v1::ListApplicationsRequest>,
    ) -> Result<Response<v1::ListApplicationsResponse>, Status> {
        unimplemented()
    }

    async fn explain_application(
        &self,
        _: Request<v1::ExplainApplicationRequest>,
    ) -> Result<Response<v1::ExplainApplicationResponse>, Status> {
        unimplemented()
    }

    async fn get_network(
        &self,
        _: Request<v1::GetNetworkRequest>,
    ) -> Result<Response<v1::GetNetworkResponse>, Status> {
        unimplemented()
    }

    async fn watch_decisions(
        &self,
        _: Request<v1::WatchDecisionsRequest>,
    ) -> Result<Response<Self::WatchDecisionsStream>, Status> {
        unimplemented()
    }
}
