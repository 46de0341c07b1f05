//! The gRPC interface of the core: converts the request, asks the core, converts the reply.

use std::pin::Pin;

use api::v1::{self, controller_server::Controller};
use api::{now_ns, sids_to_text};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::{BroadcastStream, ReceiverStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use crate::core::Handle;
use crate::message::{Assigned, COMMANDS, Hello, Message, Refusal, SessionId, ToNode};
use crate::view::{AlternativeView, AppView, InterfaceView, NodeView, Standing};

pub(crate) struct Service {
    core: Handle,
}

type Outbound<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Service {
    pub(crate) fn new(core: Handle) -> Self {
        Self { core }
    }

    async fn ask<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> Message,
    ) -> Result<T, Status> {
        let (reply, answer) = oneshot::channel();
        self.core.tell(message(reply)).await?;
        answer.await.map_err(|_| stopping())
    }
}

impl Handle {
    async fn tell(&self, message: Message) -> Result<(), Status> {
        self.0.send(message).await.map_err(|_| stopping())
    }
}

fn stopping() -> Status {
    Status::unavailable("the controller is stopping")
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        match refusal {
            Refusal::NoApplication { .. }
            | Refusal::NoNode { .. }
            | Refusal::NoFunction { .. }
            | Refusal::NoNodeIn(_) => Self::not_found(text),
            Refusal::Exists(_) => Self::already_exists(text),
            Refusal::Invalid(_) | Refusal::DemandTooLarge { .. } => Self::invalid_argument(text),
            Refusal::TooMany(_) => Self::resource_exhausted(text),
            Refusal::NotSaved(_) => Self::internal(text),
        }
    }
}

fn invalid(error: api::ConvertError) -> Status {
    Status::invalid_argument(error.to_string())
}

#[tonic::async_trait]
impl Controller for Service {
    type SessionStream = Outbound<v1::ToNode>;
    type WatchDecisionsStream = Outbound<v1::Decision>;

    async fn session(
        &self,
        request: Request<Streaming<v1::FromNode>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let mut inbound = request.into_inner();
        let first = inbound.message().await?.and_then(|from| from.message);
        let Some(v1::from_node::Message::Hello(hello)) = first else {
            return Err(Status::failed_precondition("a session begins with Hello"));
        };
        let version = hello.api_version;
        if version != api::VERSION {
            return Err(Status::failed_precondition(format!(
                "node {} speaks version {version} of the interface, this controller {}: run the \
                 same release of kaido on both",
                hello.node,
                api::VERSION
            )));
        }
        let (commands, outbound) = mpsc::channel(COMMANDS);
        let hello = Hello {
            announcement: (&hello).try_into().map_err(invalid)?,
            installed: convert_all(hello.installed)?,
            assignments: convert_all(hello.assignments)?,
            commands,
        };
        let node = hello.announcement.node.clone();
        let session = self.ask(|reply| Message::Hello(Box::new(hello), reply)).await?;
        let core = self.core.clone();
        tokio::spawn(async move {
            listen(&core, session, &node, inbound).await;
            // If the core has stopped, this message is not needed.
            let _ = core.tell(Message::Ended { session, node }).await;
        });
        let welcome = v1::to_node::Message::Welcome(v1::Welcome { api_version: api::VERSION });
        let outbound = ReceiverStream::new(outbound).map(to_node);
        let outbound = tokio_stream::once(welcome)
            .chain(outbound)
            .map(|message| Ok(v1::ToNode { message: Some(message) }));
        Ok(Response::new(Box::pin(outbound)))
    }

    async fn add_application(
        &self,
        request: Request<v1::AddApplicationRequest>,
    ) -> Result<Response<v1::AddApplicationResponse>, Status> {
        let v1::AddApplicationRequest { application, dry_run } = request.into_inner();
        let application =
            application.ok_or(api::ConvertError::Missing("application")).map_err(invalid)?;
        let application = Box::new(application.try_into().map_err(invalid)?);
        let view = self.ask(|reply| Message::Add { application, dry_run, reply }).await??;
        Ok(Response::new(v1::AddApplicationResponse { status: Some(view.into()) }))
    }

    async fn remove_application(
        &self,
        request: Request<v1::RemoveApplicationRequest>,
    ) -> Result<Response<v1::RemoveApplicationResponse>, Status> {
        let name = request.into_inner().name;
        self.ask(|reply| Message::Remove { name, reply }).await??;
        Ok(Response::new(v1::RemoveApplicationResponse {}))
    }

    async fn list_applications(
        &self,
        _: Request<v1::ListApplicationsRequest>,
    ) -> Result<Response<v1::ListApplicationsResponse>, Status> {
        let views = self.ask(|reply| Message::List { reply }).await?;
        let applications = views.into_iter().map(Into::into).collect();
        Ok(Response::new(v1::ListApplicationsResponse { applications }))
    }

    async fn explain_application(
        &self,
        request: Request<v1::ExplainApplicationRequest>,
    ) -> Result<Response<v1::ExplainApplicationResponse>, Status> {
        let name = request.into_inner().name;
        let found = self.ask(|reply| Message::Explain { name, reply }).await??;
        Ok(Response::new(v1::ExplainApplicationResponse {
            status: Some(found.app.into()),
            alternatives: found.alternatives.into_iter().map(Into::into).collect(),
            decision: found.decision.map(Into::into),
        }))
    }

    async fn get_network(
        &self,
        _: Request<v1::GetNetworkRequest>,
    ) -> Result<Response<v1::GetNetworkResponse>, Status> {
        let views = self.ask(|reply| Message::Network { reply }).await?;
        let nodes = views.into_iter().map(Into::into).collect();
        Ok(Response::new(v1::GetNetworkResponse { nodes }))
    }

    async fn watch_decisions(
        &self,
        _: Request<v1::WatchDecisionsRequest>,
    ) -> Result<Response<Self::WatchDecisionsStream>, Status> {
        let decisions = self.ask(|reply| Message::Watch { reply }).await?;
        let decisions = BroadcastStream::new(decisions).map(|decision| {
            decision
                .map(Into::into)
                .map_err(|_| Status::data_loss("the watcher is too slow: decisions were skipped"))
        });
        Ok(Response::new(Box::pin(decisions)))
    }
}

/// Forwards a node's messages to the core until the session ends.
async fn listen(
    core: &Handle,
    session: SessionId,
    node: &str,
    mut inbound: Streaming<v1::FromNode>,
) {
    while let Ok(Some(from)) = inbound.message().await {
        let message = match from.message {
            Some(v1::from_node::Message::Telemetry(telemetry)) => Message::Telemetry {
                session,
                node: node.into(),
                telemetry: telemetry.into(),
                received_at_ns: now_ns(),
            },
            Some(v1::from_node::Message::Assigned(assigned)) => Message::Assigned {
                session,
                node: node.into(),
                assigned: Assigned {
                    color: model::Color(assigned.color),
                    serial: assigned.serial,
                    error: Some(assigned.error).filter(|error| !error.is_empty()),
                    installed_at_ns: assigned.installed_at_ns,
                },
            },
            // Hello is the first message of a session; a second one ends it.
            Some(v1::from_node::Message::Hello(_)) | None => return,
        };
        if core.tell(message).await.is_err() {
            return;
        }
    }
}

fn convert_all<T, U: TryFrom<T, Error = api::ConvertError>>(all: Vec<T>) -> Result<Vec<U>, Status> {
    all.into_iter().map(|one| one.try_into().map_err(invalid)).collect()
}

fn to_node(command: ToNode) -> v1::to_node::Message {
    match command {
        ToNode::Assign(assignment, serial) => {
            v1::to_node::Message::Assign(v1::Assign { serial, ..(&*assignment).into() })
        }
        ToNode::Retract(color) => v1::to_node::Message::Retract(v1::Retract { color: color.0 }),
    }
}

impl From<AppView> for v1::ApplicationStatus {
    fn from(view: AppView) -> Self {
        let (state, limit, limit_free_bps) = match view.standing {
            Standing::Pending => (v1::State::Pending, String::new(), 0),
            Standing::Admitted => (v1::State::Admitted, String::new(), 0),
            Standing::Degraded { limit, free_bps } => (v1::State::Degraded, limit, free_bps),
            Standing::Unreachable => (v1::State::Unreachable, String::new(), 0),
        };
        Self {
            application: Some((&view.application).into()),
            color: view.color.0,
            state: state.into(),
            limit,
            limit_free_bps,
            path: view.path,
            functions_at: view.functions_at.into_iter().map(|at| at as u32).collect(),
            ipv4_segments: sids_to_text(&view.ipv4),
            ipv6_segments: sids_to_text(&view.ipv6),
            rate_bps: view.rate_bps,
            moves: view.moves,
            error: view.error.unwrap_or_default(),
        }
    }
}

impl From<AlternativeView> for v1::Alternative {
    fn from(view: AlternativeView) -> Self {
        let limit = view.limit.as_ref();
        Self {
            path: view.path,
            cost: view.cost,
            limit: limit.map(|limit| limit.port.clone()).unwrap_or_default(),
            limit_free_bps: limit.map_or(0, |limit| limit.free_bps),
            limit_capacity_bps: limit.and_then(|l| l.capacity).map_or(0, model::Bandwidth::bps),
            limit_congested: limit.is_some_and(|limit| limit.congested),
            chosen: view.chosen,
            covers: view.covers,
            not_encodable: view.not_encodable.unwrap_or_default(),
        }
    }
}

impl From<NodeView> for v1::NetworkNode {
    fn from(view: NodeView) -> Self {
        Self {
            name: view.name,
            alive: view.alive,
            transit: view.transit,
            sids: view.sids.map(Into::into),
            functions: view.functions.iter().map(Into::into).collect(),
            interfaces: view.interfaces.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<InterfaceView> for v1::NetworkInterface {
    fn from(view: InterfaceView) -> Self {
        let load = v1::InterfaceLoad {
            name: view.interface.name.clone(),
            up: view.interface.up,
            capacity_bps: view.interface.capacity.map_or(0, model::Bandwidth::bps),
            rate_bps: view.load.rate_bps,
            loss: view.load.loss,
            backlog_bytes: view.load.backlog_bytes,
            congested: view.load.congested,
        };
        Self {
            interface: Some((&view.interface).into()),
            load: Some(load),
            reserved_bps: view.reserved_bps,
        }
    }
}
