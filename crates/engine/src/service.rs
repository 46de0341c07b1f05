//! The emulator's gRPC service.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::v1;
use api::v1::emulator_server::Emulator;
use emulator::{Nanos, Network, Pattern, Traffic, nanos};
use model::topology::{self, LinkChange};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::interfaces::{self, Snapshot};
use crate::nodes::{self, VirtualNode};
use crate::plan::Direction;
use crate::tally::{self, Tally};
use crate::{EdgeCounts, Gone, Remote, capture, clock};

/// Number of directions or edges read between two packets: at most 20 µs.
const AT_ONCE: usize = 64;

/// gRPC handlers for a running engine.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) remote: Remote,
    /// Present settings of the directions.
    directions: Arc<Mutex<Vec<Direction>>>,
    nodes: Arc<[VirtualNode]>,
    /// True once the emulator ends; streams stop then.
    pub(crate) ending: watch::Receiver<bool>,
    /// Counters for the nodes; polling depends on the presence of subscribers.
    pub(crate) seen: watch::Sender<Arc<Snapshot>>,
}

impl Service {
    pub(crate) fn new(
        remote: Remote,
        directions: Vec<Direction>,
        nodes: Vec<VirtualNode>,
        ending: watch::Receiver<bool>,
    ) -> Self {
        let directions = Arc::new(Mutex::new(directions));
        let nodes = nodes.into();
        let service = Self { remote, directions, nodes, ending, seen: watch::Sender::default() };
        tokio::spawn(interfaces::look(service.clone()));
        service
    }

    /// Locks the present settings of the directions. A change holds the lock until the engine has
    /// applied it.
    pub(crate) fn directions(&self) -> MutexGuard<'_, Vec<Direction>> {
        self.directions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the direction of a link on which `from` sends.
    pub(crate) fn direction(&self, link: &str, from: &str) -> Result<Direction, Status> {
        let is_meant = |one: &&Direction| one.link == link && one.from == from;
        let found = self.directions().iter().find(is_meant).cloned();
        let missing = || format!("no emulated link `{link}` is sent on by `{from}`");
        found.ok_or_else(|| Status::not_found(missing()))
    }

    fn get(&self) -> Result<v1::GetEmulatedLinksResponse, Status> {
        let directions = self.directions().clone();
        let (tallies, at) = self.tallies(&directions)?;
        let edges = self.edges(&directions)?;
        Ok(v1::GetEmulatedLinksResponse {
            directions: directions.iter().zip(&tallies).map(|(of, tally)| tally.of(of)).collect(),
            edges: edges.iter().map(tally::edge).collect(),
            nodes: self.count_nodes()?,
            at_ns: at,
        })
    }

    /// Returns the counters of the directions and their time. Reads them in chunks, so that packets
    /// are not delayed in a large network.
    pub(crate) fn tallies(&self, directions: &[Direction]) -> Result<(Vec<Tally>, Nanos), Gone> {
        let (mut tallies, mut at) = (Vec::with_capacity(directions.len()), clock::now());
        for some in directions.chunks(AT_ONCE) {
            let ids: Vec<_> = some.iter().map(|direction| direction.id).collect();
            let job = |network: &mut Network, now| {
                let tally = |id| Tally::take(network, now, id);
                (ids.into_iter().map(tally).collect::<Vec<_>>(), now)
            };
            let (taken, now) = self.remote.with(job)?;
            tallies.extend(taken);
            at = now;
        }
        Ok((tallies, at))
    }

    /// Returns the counters of virtual routers and switches.
    fn count_nodes(&self) -> Result<Vec<v1::EmulatedNode>, Gone> {
        let mut counted = Vec::with_capacity(self.nodes.len());
        for first in (0..self.nodes.len()).step_by(AT_ONCE) {
            let all = Arc::clone(&self.nodes);
            let some = move |network: &mut Network, _| {
                let some = all.iter().skip(first).take(AT_ONCE);
                some.map(|node| nodes::count(network, node)).collect::<Vec<_>>()
            };
            counted.extend(self.remote.with(some)?);
        }
        Ok(counted)
    }

    /// Returns the counters of the edges that the directions refer to.
    fn edges(&self, directions: &[Direction]) -> Result<Vec<EdgeCounts>, Gone> {
        let named = directions.iter().flat_map(|one| [one.entry, one.exit]).flatten();
        let count = named.max().map_or(0, |last| last + 1);
        let mut edges = Vec::with_capacity(count);
        for first in (0..count).step_by(AT_ONCE) {
            edges.extend(self.remote.edges(first..count.min(first + AT_ONCE))?);
        }
        Ok(edges)
    }

    fn change(
        &self,
        request: &v1::ChangeEmulatedLinkRequest,
    ) -> Result<Vec<v1::EmulatedDirection>, Status> {
        let wrong = |text: String| Status::invalid_argument(text);
        let changes: Vec<LinkChange> = request
            .changes
            .iter()
            .map(|text| text.parse().map_err(wrong))
            .collect::<Result<_, _>>()?;
        let mut directions = self.directions();
        let is_meant = |direction: &Direction| {
            direction.link == request.link
                && (request.from.is_empty() || direction.from == request.from)
        };
        let mut changed = Vec::new();
        for (at, direction) in directions.iter().enumerate().filter(|(_, one)| is_meant(one)) {
            let of = |why| wrong(format!("{} from {}: {why}", direction.link, direction.from));
            let mut side = direction.side.changed(&changes).map_err(of)?;
            side.is_down = request.down.unwrap_or(side.is_down);
            let settings = side.settings();
            changed.push((at, side, settings));
        }
        if changed.is_empty() {
            let what = format!("`{}` is not an emulated link", request.link);
            return Err(Status::not_found(what));
        }
        let mut done = Vec::new();
        for (at, side, settings) in changed {
            directions[at].side = side;
            done.push((directions[at].clone(), settings));
        }
        let changed = self.remote.with(move |network, now| {
            for (direction, settings) in &done {
                network.change(now, direction.id, settings.clone());
            }
            done.iter().map(|(one, _)| Tally::take(network, now, one.id).of(one)).collect()
        })?;
        Ok(changed)
    }

    fn add_traffic(
        &self,
        request: v1::AddCrossTrafficRequest,
    ) -> Result<v1::EmulatedDirection, Status> {
        let v1::AddCrossTrafficRequest { link, from, traffic } = request;
        let wrong = |text: String| Status::invalid_argument(text);
        let given = traffic.ok_or_else(|| wrong("`traffic` is missing".into()))?;
        let given = topology::Traffic::try_from(given).map_err(|e| wrong(e.to_string()))?;
        let direction = self.direction(&link, &from)?;
        if let Some((key, message, help)) = given.fault(direction.side.mtu) {
            return Err(wrong(format!("{key}: {message}: {help}")));
        }
        let made = self.remote.with(move |network, now| {
            let added = network.add_traffic(now, direction.id, self::traffic(&given));
            added.map(|()| Tally::take(network, now, direction.id).of(&direction))
        })?;
        made.map_err(|_| wrong("there is no such traffic".into()))
    }

    fn stop_traffic(
        &self,
        request: &v1::StopCrossTrafficRequest,
    ) -> Result<v1::StopCrossTrafficResponse, Status> {
        let direction = self.direction(&request.link, &request.from)?;
        Ok(self.remote.with(move |network, now| {
            let stopped = network.stop_traffic(direction.id);
            let direction = Tally::take(network, now, direction.id).of(&direction);
            let stopped = u32::try_from(stopped).unwrap_or(u32::MAX);
            v1::StopCrossTrafficResponse { stopped, direction: Some(direction) }
        })?)
    }
}

/// Converts cross traffic to the emulator's type.
fn traffic(traffic: &topology::Traffic) -> Traffic {
    use topology::{Family, Pattern as Given};
    Traffic {
        bps: traffic.rate.bps(),
        duration: nanos(traffic.duration),
        pattern: match traffic.pattern {
            Given::Constant => Pattern::Constant,
            Given::Poisson => Pattern::Poisson,
            Given::OnOff { on, off } => Pattern::OnOff { on: nanos(on), off: nanos(off) },
        },
        // The size fits into a packet; `fault` has checked that.
        size: traffic.size.try_into().unwrap_or(u16::MAX),
        ipv6: traffic.family == Family::Ipv6,
    }
}

/// Runs a closure on a thread that may block on the engine.
pub(crate) async fn wait<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    tokio::task::spawn_blocking(work).await.map_err(|_| panicked())?
}

fn panicked() -> Status {
    Status::internal("the emulator has panicked: see its log")
}

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
