//! Simulates a network with traffic in steps of 100 ms: measurements and reports of the nodes, with
//! delays, and installation by the headends.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use model::{Class, Color};
use pathfinder::{Action, AppLoad, Config, Decider, Demand, Graph, Path, PortId, PortLoad, State};

use super::Net;

/// The length of a step.
pub const STEP: Duration = Duration::from_millis(100);
/// The number of samples over which nodes average.
const WINDOW: usize = 3;

/// One sample.
#[derive(Debug, Clone, Default)]
struct Sample {
    ports: HashMap<PortId, (f64, f64, bool)>,
    apps: BTreeMap<Color, f64>,
}

/// The traffic of an application.
#[derive(Debug, Clone)]
struct Sender {
    bps: f64,
    /// Sends as much as the path carries, at most `bps`.
    elastic: bool,
    path: Option<Path>,
}

pub struct World {
    pub decider: Decider,
    pub now: Duration,
    /// Constant background traffic per port, which never yields.
    pub inelastic: HashMap<PortId, f64>,
    /// The limit of elastic background traffic per port, which takes the remaining bandwidth.
    pub elastic: HashMap<PortId, f64>,
    /// The delay of a port's reports, in steps.
    pub late: HashMap<PortId, usize>,
    /// The delay of the applications' reports, in steps.
    pub apps_late: usize,
    /// All actions so far, with their times.
    pub actions: Vec<(Duration, Action)>,
    /// The noise factor of each sample, per step and port.
    pub noise: Box<dyn FnMut() -> f64>,
    graph: Graph,
    senders: BTreeMap<Color, Sender>,
    installing: Vec<Color>,
    samples: VecDeque<Sample>,
}

impl World {
    pub fn new(net: &Net, config: Config) -> Self {
        let mut decider = Decider::new(config);
        decider.set_graph(net.graph());
        Self {
            decider,
            now: Duration::ZERO,
            inelastic: HashMap::new(),
            elastic: HashMap::new(),
            late: HashMap::new(),
            apps_late: 0,
            actions: Vec::new(),
            noise: Box::new(|| 1.0),
            graph: net.graph(),
            senders: BTreeMap::new(),
            installing: Vec::new(),
            samples: VecDeque::new(),
        }
    }

    /// Adds an application that constantly sends at its demand.
    pub fn add(&mut self, demand: Demand) {
        let bps = demand.demand_bps as f64;
        self.senders.insert(demand.color, Sender { bps, elastic: false, path: None });
        self.decider.add(demand, self.now);
    }

    /// Makes an application elastic: it takes the remaining bandwidth, up to `bps`.
    pub fn make_elastic(&mut self, color: Color, bps: f64) {
        let sender = self.senders.get_mut(&color).unwrap();
        (sender.bps, sender.elastic) = (bps, true);
    }

    /// The application's current rate.
    pub fn rate(&self, color: Color) -> f64 {
        self.samples.back().map_or(0.0, |sample| sample.apps[&color])
    }

    pub fn set_graph(&mut self, graph: Graph) {
        for sender in self.senders.values_mut() {
            sender.path = sender.path.take().filter(|path| path.arcs(&graph).is_some());
        }
        self.graph = graph.clone();
        self.decider.set_graph(graph);
    }

    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    /// Simulates one step: traffic flows, is sampled and reported; the decider evaluates; the
    /// headends install its decisions by the next step.
    pub fn step(&mut self) {
        self.now += STEP;
        for color in std::mem::take(&mut self.installing) {
            let path = self.decider.app(color).unwrap().path;
            let path = path.filter(|path| path.arcs(&self.graph).is_some());
            self.senders.get_mut(&color).unwrap().path = path;
            self.decider.installed(color, self.now);
        }
        let sample = self.measure();
        self.samples.push_back(sample);
        if self.samples.len() > 32 {
            self.samples.pop_front();
        }
        self.report();
        let actions = self.decider.evaluate(self.now);
        self.installing = actions.iter().map(|action| action.color).collect();
        self.actions.extend(actions.into_iter().map(|action| (self.now, action)));
        for status in self.decider.apps().collect::<Vec<_>>() {
            let color = status.demand.color;
            if !self.installing.contains(&color) && status.state != State::Unreachable {
                self.senders.get_mut(&color).unwrap().path = status.path;
            }
        }
    }

    fn measure(&mut self) -> Sample {
        let mut sample = Sample::default();
        let capacity: HashMap<PortId, f64> = self
            .graph
            .arcs()
            .map(|(_, arc)| (arc.port, arc.capacity.map_or(f64::INFINITY, |c| c.bps() as f64)))
            .collect();
        let mut offered: HashMap<PortId, f64> = capacity
            .keys()
            .map(|port| (*port, self.inelastic.get(port).copied().unwrap_or(0.0) * (self.noise)()))
            .collect();
        for sender in self.senders.values().filter(|sender| !sender.elastic) {
            let mut left = sender.bps;
            for port in sender.path.iter().flat_map(Path::ports) {
                *offered.entry(port).or_default() += left;
                let before = self.samples.back().and_then(|sample| sample.ports.get(&port));
                left *= 1.0 - before.map_or(0.0, |&(_, loss, _)| loss);
            }
        }
        // Elastic applications take the remaining bandwidth of their narrowest port.
        let mut rates = BTreeMap::new();
        for (color, sender) in &self.senders {
            let mut rate = sender.bps;
            if sender.elastic {
                for port in sender.path.iter().flat_map(Path::ports) {
                    // Congestion control never stops sending entirely.
                    let all = capacity[&port];
                    rate = rate.min((all - offered[&port]).max(all / 200.0));
                }
                for port in sender.path.iter().flat_map(Path::ports) {
                    *offered.get_mut(&port).unwrap() += rate;
                }
            }
            rates.insert(*color, rate);
        }
        for (port, offered) in offered {
            let all = capacity[&port];
            let left = (all - offered).max(0.0);
            let wanted = self.elastic.get(&port).copied().unwrap_or(0.0);
            let loss = if offered > all { 1.0 - all / offered } else { 0.0 };
            let greedy = |sender: &Sender| {
                sender.elastic && sender.path.iter().flat_map(Path::ports).any(|p| p == port)
            };
            let full = offered + wanted.min(left) >= all * 0.999;
            let congested = loss > 0.0
                || (wanted > 0.0 && wanted > left)
                || (full && self.senders.values().any(greedy));
            let rate = (offered + wanted.min(left)).min(all);
            sample.ports.insert(port, (rate, loss, congested));
        }
        sample.apps = rates;
        sample
    }

    fn report(&mut self) {
        let newest = self.samples.len();
        let window = |late: usize| {
            let end = newest.saturating_sub(late);
            end.saturating_sub(WINDOW)..end
        };
        let ports: Vec<PortId> = self.graph.arcs().map(|(_, arc)| arc.port).collect();
        for port in ports {
            let seen: Vec<(f64, f64, bool)> = window(self.late.get(&port).copied().unwrap_or(0))
                .filter_map(|at| self.samples[at].ports.get(&port).copied())
                .collect();
            let Some(&(_, _, congested)) = seen.last() else { continue };
            let count = seen.len() as f64;
            let load = PortLoad {
                rate_bps: (seen.iter().map(|s| s.0).sum::<f64>() / count) as u64,
                loss: seen.iter().map(|s| s.1).sum::<f64>() / count,
                congested,
                ..PortLoad::default()
            };
            self.decider.report_port(port, load);
        }
        for color in self.senders.keys() {
            let seen: Vec<f64> = window(self.apps_late)
                .filter_map(|at| self.samples[at].apps.get(color).copied())
                .collect();
            if !seen.is_empty() {
                let rate_bps = (seen.iter().sum::<f64>() / seen.len() as f64) as u64;
                self.decider.report_app(*color, AppLoad { rate_bps, ..AppLoad::default() });
            }
        }
    }

    /// Checks that the ledger equals the sum of the reservations.
    pub fn check_ledger(&self) {
        let mut expected: HashMap<PortId, u64> = HashMap::new();
        for status in self.decider.apps() {
            let amount = self.decider.reservation(status.demand.color);
            for port in status.path.iter().flat_map(Path::ports) {
                *expected.entry(port).or_default() += amount;
            }
        }
        for (_, arc) in self.graph.arcs() {
            let held = self.decider.ledger().reserved(arc.port);
            assert_eq!(held, expected.get(&arc.port).copied().unwrap_or(0), "{:?}", arc.port);
        }
    }

    /// The time of the last action.
    pub fn last_action(&self) -> Duration {
        self.actions.last().map_or(Duration::ZERO, |(at, _)| *at)
    }
}

/// A demand for bandwidth.
pub fn demand(net: &Net, color: u32, from: &str, to: &str, mbps: u64) -> Demand {
    Demand {
        color: Color(color),
        from: net.id(from),
        to: net.id(to),
        demand_bps: mbps * 1_000_000,
        class: Class::Bandwidth,
        functions: Vec::new(),
    }
}

/// A deterministic noise generator.
pub fn noise(seed: u64, amplitude: f64) -> Box<dyn FnMut() -> f64> {
    let mut state = seed;
    Box::new(move || {
        // Knuth's MMIX constants.
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let unit = (state >> 33) as f64 / f64::from(1u32 << 31);
        1.0 + amplitude * (2.0 * unit - 1.0)
    })
}
