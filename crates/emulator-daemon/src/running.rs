//! The running emulator, as its gRPC handlers see it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::v1;
use emulator::{Nanos, Network, Pattern, Traffic, nanos};
use model::topology::{self, LinkChange};
use tokio::sync::watch;
use tonic::Status;

use crate::nodes::{self, VirtualNode};
use crate::plan::Direction;
use crate::tally::{self, Tally};
use crate::{EdgeCounts, Gone, Remote, clock};

/// Number of directions or edges read between two packets: at most 20 µs.
const AT_ONCE: usize = 64;

/// Counters of all directions at one time.
#[derive(Default)]
pub(crate) struct Snapshot {
    pub(crate) at: Nanos,
    pub(crate) all: Vec<(Direction, Tally)>,
}

/// The pump, and the present state of its links.
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
        Self { remote, directions, nodes, ending, seen: watch::Sender::default() }
    }

    /// Locks the present settings of the directions. A change holds the lock until the pump has
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

    pub(crate) fn get(&self) -> Result<v1::GetEmulatedLinksResponse, Status> {
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

    pub(crate) fn change(
        &self,
        request: &v1::ChangeEmulatedLinkRequest,
    ) -> Result<Vec<v1::EmulatedDirection>, Status> {
        let wrong = |text: String| Status::invalid_argument(text);
        let changes: Vec<LinkChange> = request
            .changes
            .iter()
            .map(|text| topology_file::link_change(text).map_err(wrong))
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

    pub(crate) fn add_traffic(
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
        made.map_err(|_| wrong("no such traffic".into()))
    }

    pub(crate) fn stop_traffic(
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

/// Runs a closure on a thread that may block on the pump.
pub(crate) async fn wait<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    tokio::task::spawn_blocking(work).await.map_err(|_| panicked())?
}

pub(crate) fn panicked() -> Status {
    Status::internal("the emulator has panicked: see its log")
}
