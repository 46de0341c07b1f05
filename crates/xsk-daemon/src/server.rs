//! The gRPC service of a running client.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};

use api::v1;
use api::v1::xsk_server::{Xsk, XskServer};
use sandbox::process::{Isolation, Reason};
use serve::{Incoming, Limits};
use tokio::net::{TcpListener, UnixStream};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response};
use wire::describe;
use xsk_link::{Direction, Tally, Traced, Verdict};

use crate::control::Control;
use crate::error::Error;
use crate::metrics;
use crate::status::{AttachmentStatus, ClientStatus, ProgramStatus, SocketStatus, Status};
use crate::trace::TracedPacket;

/// Number of traced packets that wait for a command.
const WAITING: usize = 256;
/// Maximum number of connections: single commands and watchers.
const CONNECTIONS: Limits = Limits::new(64);

/// The client, as `kaido xsk run` has started it.
#[derive(Debug, Clone)]
pub struct Client {
    /// Process id.
    pub process: u32,
    /// Executable.
    pub executable: String,
    /// Socket of P4Runtime.
    pub p4runtime: PathBuf,
}

/// A socket for the requests of commands.
pub struct Server(Incoming<UnixStream>);

impl Server {
    /// Creates the socket, to which only this user and root can connect. Requires a tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be created.
    pub fn bind(path: &Path) -> io::Result<Self> {
        Incoming::unix(path, CONNECTIONS).map(Self)
    }

    /// Serves requests to a daemon.
    ///
    /// # Errors
    ///
    /// Fails if the transport fails.
    pub async fn serve(
        self,
        control: Control,
        client: Client,
    ) -> Result<(), tonic::transport::Error> {
        tonic::transport::Server::builder()
            .layer(api::small_requests())
            .add_service(XskServer::new(Service { control, client }))
            .serve_with_incoming(self.0)
            .await
    }
}

impl Control {
    /// Serves the daemon's counters to Prometheus.
    pub async fn serve_metrics(self, listener: TcpListener) -> Infallible {
        let counted = move || {
            let control = self.clone();
            async move {
                let status = wait(move || control.status()).await;
                status.map(|status| metrics::text(&status)).map_err(|why| why.message().to_owned())
            }
        };
        telemetry::prometheus::serve(listener, counted).await
    }
}

struct Service {
    control: Control,
    client: Client,
}

/// Runs a request, which blocks.
async fn wait<T: Send + 'static>(
    request: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, tonic::Status> {
    let panicked = |_| tonic::Status::internal("the request has panicked");
    tokio::task::spawn_blocking(request).await.map_err(panicked)?.map_err(Into::into)
}

impl From<Error> for tonic::Status {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::BadInterface(_) | Error::AlternativeName { .. } | Error::BadNumber(_) => {
                Self::invalid_argument(text)
            }
            Error::NoTenant { .. } | Error::NotAttached(_) => Self::not_found(text),
            Error::Taken { .. } | Error::NumberTaken { .. } => Self::already_exists(text),
            Error::Full(_) | Error::Refused(_) | Error::Tracing => Self::failed_precondition(text),
            Error::Away => Self::unavailable(text),
        }
    }
}

/// Converts a traced packet for a stream.
type Sent = fn(TracedPacket) -> Result<v1::TracedXskPacket, tonic::Status>;

#[tonic::async_trait]
impl Xsk for Service {
    type TraceXskStream = tokio_stream::adapters::Map<ReceiverStream<TracedPacket>, Sent>;

    async fn trace_xsk(
        &self,
        request: Request<v1::TraceXskRequest>,
    ) -> Result<Response<Self::TraceXskStream>, tonic::Status> {
        let control = self.control.clone();
        let v1::TraceXskRequest { interface, most } = request.into_inner();
        let (sink, packets) = tokio::sync::mpsc::channel(WAITING);
        wait(move || control.trace(interface, most, sink)).await?;
        Ok(Response::new(ReceiverStream::new(packets).map((|packet| Ok(traced(packet))) as Sent)))
    }

    async fn get_xsk(
        &self,
        _: Request<v1::GetXskRequest>,
    ) -> Result<Response<v1::GetXskResponse>, tonic::Status> {
        let control = self.control.clone();
        let status = wait(move || control.status()).await?;
        Ok(Response::new(state(&self.client, status)))
    }

    async fn attach_xsk(
        &self,
        request: Request<v1::AttachXskRequest>,
    ) -> Result<Response<v1::AttachXskResponse>, tonic::Status> {
        let control = self.control.clone();
        let v1::AttachXskRequest { tenant, interface, port } = request.into_inner();
        let attached = wait(move || control.attach(&tenant, &interface, port)).await?;
        let sockets = u32::try_from(attached.sockets).unwrap_or(u32::MAX);
        Ok(Response::new(v1::AttachXskResponse { port: attached.number, sockets }))
    }

    async fn detach_xsk(
        &self,
        request: Request<v1::DetachXskRequest>,
    ) -> Result<Response<v1::DetachXskResponse>, tonic::Status> {
        let control = self.control.clone();
        let interface = request.into_inner().interface;
        let tenant = wait(move || control.detach(&interface)).await?;
        Ok(Response::new(v1::DetachXskResponse { tenant }))
    }
}

fn state(client: &Client, status: Status) -> v1::GetXskResponse {
    v1::GetXskResponse {
        process: client.process,
        executable: client.executable.clone(),
        p4runtime: client.p4runtime.display().to_string(),
        programs: status.programs.into_iter().map(program).collect(),
        processes: status.clients.into_iter().map(process).collect(),
    }
}

fn program(of: ProgramStatus) -> v1::XskProgram {
    let texts = |isolation: Isolation| isolation.names().into_iter().map(str::to_owned).collect();
    let ports = of.ports.into_iter();
    let ports =
        ports.map(|port| v1::XskPort { interface: port.interface, number: port.number }).collect();
    v1::XskProgram {
        tenant: of.tenant,
        device: of.device,
        version: of.version,
        process: of.health.process,
        failures: of.health.failures,
        evicted: of.health.is_evicted,
        last_failure: of.health.last_failure,
        inline: of.health.is_hosted,
        isolation: texts(of.health.isolation),
        isolation_lacks: texts(of.health.lacks),
        ports,
    }
}

fn process(of: ClientStatus) -> v1::XskProcess {
    let directions = of.sockets.into_iter().flat_map(|socket| {
        let SocketStatus { interface, queue, directions } = socket;
        directions.into_iter().map(move |one| direction(&interface, queue, one))
    });
    v1::XskProcess { process: of.process, executable: of.name, directions: directions.collect() }
}

fn direction(interface: &str, queue: u32, of: AttachmentStatus) -> v1::XskDirection {
    v1::XskDirection {
        interface: interface.to_owned(),
        queue,
        transmit: of.direction == Direction::Transmit,
        tenant: of.tenant,
        port: of.port,
        packets: Some(counters(&of.tally)),
    }
}

fn traced(of: TracedPacket) -> v1::TracedXskPacket {
    let Traced { length, head, verdict, passed_length, passed_head } = of.packet;
    let reason = match verdict {
        Verdict::Policy { reason, .. } => words(reason),
        _ => String::new(),
    };
    v1::TracedXskPacket {
        process: of.process,
        interface: of.interface,
        queue: of.queue,
        transmit: of.direction == Direction::Transmit,
        tenant: of.tenant,
        port: of.port,
        length,
        headers: describe(&head),
        head,
        verdict: match verdict {
            Verdict::Passed | Verdict::Policy { passes: true, .. } => "passed",
            Verdict::Dropped | Verdict::Policy { passes: false, .. } => "dropped",
            Verdict::Redirected(_) => "redirected",
            Verdict::Unfit => "unfit",
        }
        .to_owned(),
        redirected_to: match verdict {
            Verdict::Redirected(port) => Some(port),
            _ => None,
        },
        reason,
        passed_length,
        passed_headers: if passed_head.is_empty() { String::new() } else { describe(&passed_head) },
        passed_head,
    }
}

/// Returns the reason that there is no verdict.
fn words(reason: Reason) -> String {
    match reason {
        Reason::Program => String::new(),
        Reason::Aborted => "the program aborted".to_owned(),
        Reason::Fault(kind) => kind.to_string(),
        Reason::Deadline => "no verdict within the deadline".to_owned(),
        Reason::Crashed => "the process crashed".to_owned(),
        Reason::ProtocolViolation => "the process violated the protocol".to_owned(),
        Reason::Restarting => "the process is being restarted".to_owned(),
        Reason::Evicted => "the tenant is evicted".to_owned(),
    }
}

fn counters(tally: &Tally) -> v1::XskCounters {
    v1::XskCounters {
        in_flight: tally.flying,
        without_program: tally.unjudged,
        submitted: tally.submitted,
        passed: tally.passed,
        dropped: tally.dropped,
        redirected: tally.redirected,
        by_policy: tally.policy,
        dropped_by_policy: tally.policy_dropped,
        unfit: tally.unfit,
        wrong_owner: tally.wrong_owner,
    }
}
