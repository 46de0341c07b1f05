//! The decisions about which application moves, and when.
//!
//! There is one decider per domain, so decisions are made one after another on a single ledger.
//! Independent agents that choose from the same stale state would follow each other from path to
//! path.

mod evaluate;
pub(crate) mod view;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use model::{Class, Color};

use crate::Config;
use crate::graph::{ArcId, Graph, NodeId, Path, PortId};
use crate::layers::{self, Layers};
use crate::ledger::Ledger;
use crate::load::{AppLoad, PortLoad, Stamps};
use crate::segments::{self, Lists};

/// The demand of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// The application's color.
    pub color: Color,
    /// The node at which its packets enter the network.
    pub from: NodeId,
    /// The destination node.
    pub to: NodeId,
    /// The demand, in layer-2 bits per second.
    pub demand_bps: u64,
    /// The class of service that it needs.
    pub class: Class,
    /// The service functions that its packets visit, in this order.
    pub functions: Vec<String>,
}

/// The state of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Not decided yet.
    Pending,
    /// On a path that covers its demand, or on the IGP's path if it asked for that.
    Admitted,
    /// No path covers its demand. It is on the best path, which this port limits.
    Degraded {
        /// The narrowest port.
        limit: PortId,
        /// The free bandwidth there for this application, in bits per second.
        free_bps: u64,
    },
    /// There is no path.
    Unreachable,
}

/// The reason for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The application is new.
    New,
    /// A port of the path no longer covers the demand.
    Violated {
        /// The port.
        port: PortId,
        /// The free bandwidth there, in bits per second.
        free_bps: u64,
    },
    /// The path no longer exists.
    Broken,
    /// Another path has been better for long enough.
    Better,
    /// The path stays, but the IGP changed around it, so it needs a different segment list.
    Relisted,
}

/// A decision that changes the installed state.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The reason.
    pub cause: Cause,
    /// The time, on the decider's clock.
    pub at: Duration,
    /// The path before.
    pub before: Option<Path>,
    /// The path after.
    pub after: Option<Path>,
    /// The first sample that showed the violation; zero if the cause was not a violation.
    pub evidence: Stamps,
}

/// An action for the caller: install these segment lists at the application's headend, or remove
/// the policy if they are empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// The application.
    pub color: Color,
    /// Segment lists.
    pub lists: Lists,
    /// The decision that caused this action.
    pub decision: Decision,
}

/// The status of an application.
#[derive(Debug, Clone)]
pub struct AppStatus {
    /// Demand.
    pub demand: Demand,
    /// State.
    pub state: State,
    /// Path.
    pub path: Option<Path>,
    /// Segment lists.
    pub lists: Lists,
    /// Last measured load.
    pub load: AppLoad,
    /// The number of path changes, not counting the first assignment.
    pub moves: u32,
}

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) demand: Demand,
    pub(crate) state: State,
    pub(crate) path: Option<Path>,
    pub(crate) lists: Lists,
    pub(crate) load: AppLoad,
    /// The path that it leaves and its reservation there, while it counts on both paths.
    pub(crate) leaving: Option<(Path, u64)>,
    pub(crate) settled_at: Option<Duration>,
    pub(crate) assigned_at: Duration,
    pub(crate) installed_at: Option<Duration>,
    pub(crate) violated_since: Option<Duration>,
    pub(crate) starved_since: Option<Duration>,
    /// True once it has starved for long enough to count as starved.
    pub(crate) starved: bool,
    pub(crate) better_since: Option<Duration>,
    /// The first sample of the current violation.
    pub(crate) evidence: Stamps,
    pub(crate) recent_moves: Vec<Duration>,
    pub(crate) moves: u32,
    pub(crate) decision: Option<Decision>,
}

/// The applications, their reservations and their load; see the module documentation.
#[derive(Debug, Default)]
pub struct Decider {
    config: Config,
    graph: Graph,
    graph_changed: bool,
    /// The layered network per sequence of functions, built when an application needs it.
    layers: HashMap<Vec<String>, Layers>,
    loads: HashMap<PortId, PortLoad>,
    apps: BTreeMap<Color, App>,
    ledger: Ledger,
    wakeup: Option<Duration>,
}

impl Decider {
    /// A decider without applications.
    pub fn new(config: Config) -> Self {
        Self { config, ..Self::default() }
    }

    /// Replaces the snapshot of the network.
    pub fn set_graph(&mut self, graph: Graph) {
        self.graph = graph;
        self.graph_changed = true;
        self.layers.clear();
    }

    /// The current snapshot.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Stores a port's load.
    pub fn report_port(&mut self, port: PortId, load: PortLoad) {
        self.loads.insert(port, load);
    }

    /// A port's last reported load.
    pub fn load(&self, port: PortId) -> Option<&PortLoad> {
        self.loads.get(&port)
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Stores an application's load.
    pub fn report_app(&mut self, color: Color, load: AppLoad) {
        if let Some(app) = self.apps.get_mut(&color) {
            app.load = load;
        }
    }

    /// Adds an application, or changes its demand. If only the bandwidth changes, the application
    /// keeps its path as long as the path covers it.
    pub fn add(&mut self, demand: Demand, now: Duration) {
        if let Some(app) = self.apps.get_mut(&demand.color) {
            if (Demand { demand_bps: app.demand.demand_bps, ..demand.clone() }) != app.demand {
                // The installed lists stay until the next round decides again.
                app.path = None;
                app.leaving = None;
                app.state = State::Pending;
            }
            app.demand = demand;
            return;
        }
        let app = App {
            state: State::Pending,
            path: None,
            lists: Lists::default(),
            load: AppLoad::default(),
            leaving: None,
            settled_at: None,
            assigned_at: now,
            installed_at: None,
            violated_since: None,
            starved_since: None,
            starved: false,
            better_since: None,
            evidence: Stamps::default(),
            recent_moves: Vec::new(),
            moves: 0,
            decision: None,
            demand,
        };
        self.apps.insert(app.demand.color, app);
    }

    /// Restores the placement that an earlier controller chose: the application is on `path`, with
    /// `lists`. A path with other ends than the application's is dropped, and the lists are
    /// replaced in the next round.
    pub fn restore(&mut self, color: Color, path: Path, lists: Lists, reserved: u64) {
        let Some(app) = self.apps.get_mut(&color) else { return };
        app.lists = lists;
        if (Some(path.start), path.nodes().last()) != (Some(app.demand.from), Some(app.demand.to)) {
            return;
        }
        app.state = match path.ports().next() {
            // It was degraded. The limiting port is not stored; the next evaluation determines it.
            Some(limit) if reserved < app.demand.demand_bps => {
                State::Degraded { limit, free_bps: reserved }
            }
            _ => State::Admitted,
        };
        self.ledger.hold(color, [(&path, reserved)]);
        app.path = Some(path);
    }

    /// Removes an application and its reservations.
    pub fn remove(&mut self, color: Color) {
        self.ledger.release(color);
        self.apps.remove(&color);
    }

    /// Records that the headend confirmed the application's last segment lists.
    pub fn installed(&mut self, color: Color, now: Duration) {
        if let Some(app) = self.apps.get_mut(&color) {
            app.installed_at = Some(now);
            if app.leaving.is_some() {
                app.settled_at = Some(now + self.config.settle);
            }
        }
    }

    /// The status of all applications, ordered by color.
    pub fn apps(&self) -> impl Iterator<Item = AppStatus> + '_ {
        self.apps.values().map(App::status)
    }

    /// The status of one application.
    pub fn app(&self, color: Color) -> Option<AppStatus> {
        self.apps.get(&color).map(App::status)
    }

    /// The time at which [`Decider::evaluate`] must be called again even without new reports.
    pub fn wakeup(&self) -> Option<Duration> {
        self.wakeup
    }

    /// The segment lists for an application's packets over `arcs`, through its functions.
    pub(crate) fn lists(&self, demand: &Demand, arcs: &[ArcId]) -> Result<Lists, segments::Error> {
        let served = layers::served(&self.graph, arcs, &demand.functions);
        let served = served.ok_or(segments::Error::NotServed)?;
        segments::through(&self.graph, demand.from, arcs, &served)
    }

    /// The points on the path at which an application's functions run: for each, the number of the
    /// link, counted from 1, after which it runs.
    pub fn served(&self, color: Color) -> Vec<usize> {
        let arcs = |app: &App| app.path.as_ref()?.arcs(&self.graph);
        let app = self.apps.get(&color);
        let served =
            app.and_then(|app| layers::served(&self.graph, &arcs(app)?, &app.demand.functions));
        served.unwrap_or_default().into_iter().map(|(at, _)| at).collect()
    }

    pub(crate) fn apps_by_color(&self, color: Color) -> Option<&App> {
        self.apps.get(&color)
    }

    /// The parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// An application's reservation: its demand, or the free bandwidth of its degraded path. Zero
    /// without a path, or if it follows the IGP.
    pub fn reservation(&self, color: Color) -> u64 {
        self.apps.get(&color).map_or(0, App::reservation)
    }
}

impl App {
    fn reservation(&self) -> u64 {
        match self.state {
            _ if self.demand.class == Class::LowLatency => 0,
            State::Pending | State::Unreachable => 0,
            State::Degraded { free_bps, .. } => free_bps.min(self.demand.demand_bps),
            State::Admitted => self.demand.demand_bps,
        }
    }

    fn status(&self) -> AppStatus {
        AppStatus {
            demand: self.demand.clone(),
            state: self.state,
            path: self.path.clone(),
            lists: self.lists.clone(),
            load: self.load,
            moves: self.moves,
        }
    }
}
