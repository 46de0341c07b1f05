//! The data plane's gRPC service: each call is an order for the reconciler.

use std::net::IpAddr;
use std::path::Path;
use std::sync::mpsc;

use api::v1;
use bpf::attach::Mode;
use bpf::{Count, Drops, Filter};
use dataplane::Counter;
use dataplane::forwarding::{Names, Tags, lists};
use ipnet::IpNet;
use tokio::sync::oneshot;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::health::Record;
use crate::reasons::REASONS;
use crate::reconciler::Reconciler;
use crate::reply::response;
use crate::trace::{Sink, WAITING};
use crate::{Config, Error, functions, state};

type Sent = fn(v1::TracedPacket) -> Result<v1::TracedPacket, Status>;

/// Maximum length of an error message, in characters.
const MAX_MESSAGE: usize = 4096;

type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// An order for the reconciler.
pub(crate) enum Order {
    Apply { request: v1::ApplyDataplaneRequest, reply: Reply<v1::ApplyDataplaneResponse> },
    AddFunction { request: v1::AddFunctionRequest, reply: Reply<v1::ApplyDataplaneResponse> },
    RemoveFunction { request: v1::RemoveFunctionRequest, reply: Reply<v1::ApplyDataplaneResponse> },
    Get { counted: bool, reply: Reply<v1::GetDataplaneResponse> },
    EndTrace { reply: Reply<()> },
    Trace { request: v1::TraceDataplaneRequest, sink: Sink, reply: Reply<()> },
    Detach { reply: Reply<v1::DetachDataplaneResponse> },
}

impl Order {
    /// Executes the order, and sends the reply if the client still waits. `state` is the daemon's
    /// directory.
    pub(crate) fn carry_out(self, reconciler: &mut Reconciler, state: &Path) {
        // Orders that create or remove pins must not fail halfway.
        let pinned = |reconciler: &Reconciler| state::check(state, reconciler.which());
        match self {
            Self::Apply { request, reply } => {
                let done = pinned(reconciler).and_then(|()| apply(reconciler, &request, state));
                let _ = reply.send(done);
            }
            Self::AddFunction { request, reply } => {
                let done =
                    pinned(reconciler).and_then(|()| functions::add(reconciler, &request, state));
                let _ = reply.send(done);
            }
            Self::RemoveFunction { request, reply } => {
                let done = pinned(reconciler)
                    .and_then(|()| functions::remove(reconciler, &request, state));
                let _ = reply.send(done);
            }
            // Its client has gone: nothing would be changed.
            Self::Get { reply, .. } if reply.is_closed() => {}
            Self::Get { counted, reply } => {
                let _ = reply.send(Ok(get(reconciler, counted)));
            }
            Self::EndTrace { reply } => {
                reconciler.end_trace();
                let _ = reply.send(Ok(()));
            }
            Self::Trace { request, sink, reply } => {
                let _ =
                    reply.send(pinned(reconciler).and_then(|()| trace(reconciler, &request, sink)));
            }
            Self::Detach { reply } => {
                let done = pinned(reconciler).and_then(|()| {
                    reconciler.detach()?;
                    // Remove it, so that the next start begins with nothing.
                    let _ = std::fs::remove_file(Config::applied(state));
                    Ok(())
                });
                let _ = reply.send(done.map(|()| v1::DetachDataplaneResponse {}));
            }
        }
    }
}

fn apply(
    reconciler: &mut Reconciler,
    request: &v1::ApplyDataplaneRequest,
    state: &Path,
) -> Result<v1::ApplyDataplaneResponse, Error> {
    let name = if request.name.is_empty() { "the file" } else { &request.name };
    let file = dataplane_file::parse(name, &request.file).map_err(Error::File)?;
    let most = request.most as usize;
    let difference = if request.plan {
        reconciler.plan(&file, most)?
    } else {
        let applied = Config::applied(state);
        crate::apply_and_keep(reconciler, file, &request.file, most, &applied)?
    };
    Ok(response(&difference, reconciler))
}

fn trace(
    reconciler: &mut Reconciler,
    request: &v1::TraceDataplaneRequest,
    sink: Sink,
) -> Result<(), Error> {
    let wrong = |what: String| Error::Match(what);
    let net = |text: &str| {
        let address = text.parse::<IpAddr>().map(IpNet::from);
        match address.or_else(|_| text.parse::<IpNet>()) {
            _ if text.is_empty() => Ok(None),
            Ok(net) => Ok(Some(net)),
            Err(_) => Err(wrong(format!("`{text}` is neither an address nor a prefix"))),
        }
    };
    let port = Some(request.port.as_str()).filter(|name| !name.is_empty());
    let interface = port
        .map(|name| {
            let missing =
                || wrong(format!("`{name}` is not a port: `kaido dataplane show` lists the ports"));
            reconciler.port(name).ok_or_else(missing)
        })
        .transpose()?;
    let vlan = Some(request.vlan).filter(|vlan| *vlan > 0);
    if let Some(vlan) = vlan.filter(|vlan| *vlan > 4094) {
        return Err(wrong(format!("`{vlan}` is not a VLAN id: write 1 to 4094")));
    }
    let vlan = vlan.map(|vlan| vlan as u16);
    let filter = Filter {
        interface,
        vlan,
        source: net(&request.source)?,
        destination: net(&request.destination)?,
    };
    if let (Some(IpNet::V4(_)), Some(IpNet::V6(_))) | (Some(IpNet::V6(_)), Some(IpNet::V4(_))) =
        (filter.source, filter.destination)
    {
        return Err(wrong("`src` and `dst` are of different families".into()));
    }
    reconciler.trace(filter, request.most.max(1), sink)
}

/// Returns the installed state; with `counted`, only SIDs and policies that have counted packets.
fn get(reconciler: &Reconciler, counted: bool) -> v1::GetDataplaneResponse {
    let plane = reconciler.plane();
    let now = plane.current();
    let names = Names { of: now, tenant: &|tenant| reconciler.tenant(tenant) };
    let entry = |name: String, action: String, count: Option<Count>| v1::DataplaneEntry {
        name,
        action,
        packets: count.map(|count| count.packets),
        bytes: count.map(|count| count.bytes),
        returned: None,
        health: None,
        dropped: None,
    };
    let has_counted = |count: Option<Count>| !counted || count.is_some_and(|c| c.packets > 0);
    let sids = now.sids.iter().map(|(sid, what)| (sid, what, plane.count(Counter::Sid(sid))));
    // Include functions with a check: a function that is down counts nothing.
    let mut sids: Vec<_> =
        sids.filter(|(_, what, count)| has_counted(*count) || what.health.is_some()).collect();
    sids.sort_by_key(|(sid, ..)| **sid);
    let policies = now.policies.iter();
    let policies = policies.map(|(id, what)| (id, what, plane.count(Counter::Policy(id))));
    let mut policies: Vec<_> = policies.filter(|(_, _, count)| has_counted(*count)).collect();
    policies.sort_by_key(|(id, ..)| (*id).clone());
    let packets = |of| plane.count(of).map(|count| count.packets);
    v1::GetDataplaneResponse {
        ports: now
            .ports
            .iter()
            .map(|(index, port)| v1::DataplanePort {
                name: port.name.clone(),
                mode: match plane.mode(*index) {
                    Some(Mode::Native) => "native".into(),
                    Some(Mode::Generic) => "generic".into(),
                    Some(Mode::Auto) | None => String::new(),
                },
                requires_hmac: port.requires_hmac,
                edge: port.edge || port.closed,
                vlans: now.domain_tags(*index).iter().map(Tags::to_string).collect(),
                renamed_to: reconciler.renamed_to(*index, &port.name).unwrap_or_default(),
            })
            .collect(),
        sids: sids
            .into_iter()
            .map(|(sid, endpoint, count)| v1::DataplaneEntry {
                returned: packets(Counter::Returned(sid)),
                health: reconciler.health(*sid).map(health),
                dropped: plane.drops(sid).filter(|_| endpoint.is_netfilter()).map(dropped),
                ..entry(sid.to_string(), names.endpoint(endpoint), count)
            })
            .collect(),
        policies: policies
            .into_iter()
            .map(|(id, policy, count)| entry(names.policy_name(id), lists(policy), count))
            .collect(),
        reasons: REASONS
            .iter()
            .filter_map(|(number, name, text)| {
                Some(v1::DataplaneReason {
                    reason: (*name).into(),
                    text: (*text).into(),
                    passed: packets(Counter::Left(number.0))?,
                    dropped: packets(Counter::Dropped(number.0))?,
                })
            })
            .collect(),
        left: reconciler
            .imported()
            .left
            .iter()
            .map(|left| v1::DataplaneLeft {
                destination: left.destination.to_string(),
                reason: left.reason.into(),
            })
            .collect(),
        imported: reconciler.imported().taken as u64,
        tenants: reconciler.tenant_counts(),
        dataplane: reconciler.which().name().into(),
        warnings: reconciler.warnings(),
        sources: now.sources_of(None).map(|net| net.to_string()).collect(),
    }
}

fn health(record: Record) -> v1::DataplaneHealth {
    let Record { up, since, in_a_row, runs, failures, not_started, failure } = record;
    let for_ms = since.elapsed().as_millis() as u64;
    v1::DataplaneHealth { up, for_ms, in_a_row, runs, failures, failure, not_started }
}

fn dropped(drops: Drops) -> v1::FunctionDrops {
    let Drops { prerouting, forward, postrouting, no_hook } = drops;
    v1::FunctionDrops { prerouting, forward, postrouting, no_hook }
}

/// A handle for sending orders to the reconciler.
#[derive(Clone)]
pub(crate) struct Orders(mpsc::Sender<Order>);

impl Orders {
    pub(crate) fn new(orders: mpsc::Sender<Order>) -> Self {
        Self(orders)
    }

    async fn give<T>(&self, order: impl FnOnce(Reply<T>) -> Order) -> Result<T, Status> {
        let (reply, answer) = oneshot::channel();
        let gone = || Status::unavailable("the data plane's reconciler exited: see its log");
        self.0.send(order(reply)).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?.map_err(|error| {
            // A message that does not fit into an HTTP header frame would be lost.
            let text: String = api::in_one_line(&error).chars().take(MAX_MESSAGE).collect();
            if error.is_usage() {
                Status::invalid_argument(text)
            } else {
                Status::failed_precondition(text)
            }
        })
    }

    /// Returns the entries with a count above 0.
    pub(crate) async fn counted(&self) -> Result<v1::GetDataplaneResponse, Status> {
        self.give(|reply| Order::Get { counted: true, reply }).await
    }

    /// Ends the trace, if there is one: its open stream would keep the server from shutting down.
    pub(crate) async fn end_trace(&self) {
        // Without a reconciler nothing is traced.
        let _ = self.give(|reply| Order::EndTrace { reply }).await;
    }
}

/// Forwards calls to the reconciler.
pub(crate) struct Service {
    orders: Orders,
}

impl Service {
    pub(crate) fn new(orders: Orders) -> Self {
        Self { orders }
    }

    async fn order<T>(&self, order: impl FnOnce(Reply<T>) -> Order) -> Result<Response<T>, Status> {
        self.orders.give(order).await.map(Response::new)
    }
}

#[tonic::async_trait]
impl v1::dataplane_server::Dataplane for Service {
    type TraceDataplaneStream = tokio_stream::adapters::Map<ReceiverStream<v1::TracedPacket>, Sent>;

    async fn trace_dataplane(
        &self,
        request: Request<v1::TraceDataplaneRequest>,
    ) -> Result<Response<Self::TraceDataplaneStream>, Status> {
        let (sink, packets) = tokio::sync::mpsc::channel(WAITING);
        let request = request.into_inner();
        self.order(|reply| Order::Trace { request, sink, reply }).await?;
        Ok(Response::new(ReceiverStream::new(packets).map(Ok as Sent)))
    }

    async fn apply_dataplane(
        &self,
        request: Request<v1::ApplyDataplaneRequest>,
    ) -> Result<Response<v1::ApplyDataplaneResponse>, Status> {
        self.order(|reply| Order::Apply { request: request.into_inner(), reply }).await
    }

    async fn add_function(
        &self,
        request: Request<v1::AddFunctionRequest>,
    ) -> Result<Response<v1::ApplyDataplaneResponse>, Status> {
        self.order(|reply| Order::AddFunction { request: request.into_inner(), reply }).await
    }

    async fn remove_function(
        &self,
        request: Request<v1::RemoveFunctionRequest>,
    ) -> Result<Response<v1::ApplyDataplaneResponse>, Status> {
        self.order(|reply| Order::RemoveFunction { request: request.into_inner(), reply }).await
    }

    async fn get_dataplane(
        &self,
        _: Request<v1::GetDataplaneRequest>,
    ) -> Result<Response<v1::GetDataplaneResponse>, Status> {
        self.order(|reply| Order::Get { counted: false, reply }).await
    }

    async fn detach_dataplane(
        &self,
        _: Request<v1::DetachDataplaneRequest>,
    ) -> Result<Response<v1::DetachDataplaneResponse>, Status> {
        self.order(|reply| Order::Detach { reply }).await
    }
}
