//! Who moves, and when.
//!
//! One decider per domain, so that decisions are made one after the other on one ledger: agents
//! that each choose for themselves on the same stale state run after each other.

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

/// What an application asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// The application's number.
    pub color: Color,
    /// Where its packets enter the network.
    pub from: NodeId,
    /// Where they go.
    pub to: NodeId,
    /// Layer-2 bits per second.
    pub demand_bps: u64,
    /// What it asks of its path.
    pub class: Class,
    /// The service functions that its packets pass, in their order.
    pub functions: Vec<String>,
}

/// What became of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing decided yet.
    Pending,
    /// On a path that covers its demand, or on the IGP's if that is what it asked for.
    Admitted,
    /// No path covers its demand: it is on the best one, which this port limits.
    Degraded {
        /// The narrowest port.
        limit: PortId,
        /// What is free there for this application, bits per second.
        free_bps: u64,
    },
    /// There is no path at all.
    Unreachable,
}

/// Why a decision was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The application is new.
    New,
    /// A port of the path does not cover the demand any more.
    Violated {
        /// The port.
        port: PortId,
        /// What was free there, bits per second.
        free_bps: u64,
    },
    /// The path is not there any more.
    Broken,
    /// Another path has been better for long enough.
    Better,
    /// The path stays, but the IGP changed around it: its segment list is another.
    Relisted,
}

/// A decision that changes what is installed.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Why.
    pub cause: Cause,
    /// When, on the decider's clock.
    pub at: Duration,
    /// The path before.
    pub before: Option<Path>,
    /// The path after.
    pub after: Option<Path>,
    /// The first sample that showed the violation that caused it; zero without one.
    pub evidence: Stamps,
}

/// What the caller has to do: install these lists at the application's headend, or remove the
/// policy when they are empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// The application.
    pub color: Color,
    /// Its lists.
    pub lists: Lists,
    /// Why.
    pub decision: Decision,
}

/// An application as the decider sees it.
#[derive(Debug, Clone)]
pub struct AppStatus {
    /// What it asked for.
    pub demand: Demand,
    /// What became of it.
    pub state: State,
    /// Its path.
    pub path: Option<Path>,
    /// Its lists.
    pub lists: Lists,
    /// What it was last measured to send.
    pub load: AppLoad,
    /// How often it changed paths, the first assignment not counted.
    pub moves: u32,
}

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) demand: Demand,
    pub(crate) state: State,
    pub(crate) path: Option<Path>,
    pub(crate) lists: Lists,
    pub(crate) load: AppLoad,
    /// The path it is leaving and what it was promised there, while it counts on both.
    pub(crate) leaving: Option<(Path, u64)>,
    pub(crate) settled_at: Option<Duration>,
    pub(crate) assigned_at: Duration,
    pub(crate) installed_at: Option<Duration>,
    pub(crate) violated_since: Option<Duration>,
    pub(crate) starved_since: Option<Duration>,
    /// It has starved for long enough to be believed.
    pub(crate) starved: bool,
    pub(crate) better_since: Option<Duration>,
    /// The first sample of the violation that lasts.
    pub(crate) evidence: Stamps,
    pub(crate) recent_moves: Vec<Duration>,
    pub(crate) moves: u32,
    pub(crate) decision: Option<Decision>,
}

/// Applications, their reservations and their load; see the module's text.
#[derive(Debug, Default)]
pub struct Decider {
    config: Config,
    graph: Graph,
    graph_changed: bool,
    /// The network in layers, by functions, as far as an application has asked.
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

    /// Takes a new snapshot of the network.
    pub fn set_graph(&mut self, graph: Graph) {
        self.graph = graph;
        self.graph_changed = true;
        self.layers.clear();
    }

    /// The current snapshot.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Takes a port's load.
    pub fn report_port(&mut self, port: PortId, load: PortLoad) {
        self.loads.insert(port, load);
    }

    /// A port's last load.
    pub fn load(&self, port: PortId) -> Option<&PortLoad> {
        self.loads.get(&port)
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Takes an application's load.
    pub fn report_app(&mut self, color: Color, load: AppLoad) {
        if let Some(app) = self.apps.get_mut(&color) {
            app.load = load;
        }
    }

    /// Adds an application, or changes what it asks for. When only the amount changes, its path is
    /// kept if it still fits.
    pub fn add(&mut self, demand: Demand, now: Duration) {
        if let Some(app) = self.apps.get_mut(&demand.color) {
            if (Demand { demand_bps: app.demand.demand_bps, ..demand.clone() }) != app.demand {
                // What is installed stays until the next round decides anew.
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

    /// Takes up where an earlier controller was: the application is on `path`, by `lists`. A path
    /// between other ends than the application's is dropped, and the lists replaced next round.
    pub fn restore(&mut self, color: Color, path: Path, lists: Lists, reserved: u64) {
        let Some(app) = self.apps.get_mut(&color) else { return };
        app.lists = lists;
        if (Some(path.start), path.nodes().last()) != (Some(app.demand.from), Some(app.demand.to)) {
            return;
        }
        app.state = match path.ports().next() {
            // It was degraded. Which port limits it is not kept: the next judgement says.
            Some(limit) if reserved < app.demand.demand_bps => {
                State::Degraded { limit, free_bps: reserved }
            }
            _ => State::Admitted,
        };
        self.ledger.hold(color, [(&path, reserved)]);
        app.path = Some(path);
    }

    /// Forgets an application and its reservations.
    pub fn remove(&mut self, color: Color) {
        self.ledger.release(color);
        self.apps.remove(&color);
    }

    /// The headend confirmed the application's last lists.
    pub fn installed(&mut self, color: Color, now: Duration) {
        if let Some(app) = self.apps.get_mut(&color) {
            app.installed_at = Some(now);
            if app.leaving.is_some() {
                app.settled_at = Some(now + self.config.settle);
            }
        }
    }

    /// Every application, in order.
    pub fn apps(&self) -> impl Iterator<Item = AppStatus> + '_ {
        self.apps.values().map(App::status)
    }

    /// One application.
    pub fn app(&self, color: Color) -> Option<AppStatus> {
        self.apps.get(&color).map(App::status)
    }

    /// When [`Decider::evaluate`] must be called again although nothing was reported.
    pub fn wakeup(&self) -> Option<Duration> {
        self.wakeup
    }

    /// The lists that lead an application's packets over `arcs`, by its functions.
    pub(crate) fn lists(&self, demand: &Demand, arcs: &[ArcId]) -> Result<Lists, segments::Error> {
        let served = layers::served(&self.graph, arcs, &demand.functions);
        let served = served.ok_or(segments::Error::NotServed)?;
        segments::through(&self.graph, demand.from, arcs, &served)
    }

    /// Where on its path each of an application's functions is done: the number of the link, counted
    /// from 1, at whose end it is.
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

    /// The knobs.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What an application is promised: its demand, or what its degraded path has left; nothing
    /// while it has no path, or follows the IGP.
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
