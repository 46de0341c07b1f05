//! One round of decisions.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use model::{Class, Color};

use super::view::View;
use super::{Action, App, Cause, Decider, Decision, Demand, State};
use crate::Config;
use crate::graph::{ArcId, Graph, NodeId, Path, PortId};
use crate::igp;
use crate::layers::Layers;
use crate::load::{AppLoad, Managed, Stamps};
use crate::search::{self, Found, Limits};
use crate::segments::Lists;

/// A chosen path, before it is assigned.
struct Choice {
    path: Path,
    lists: Lists,
    /// Narrowest port and the free bandwidth there; None if it covers the demand.
    short: Option<(PortId, u64)>,
}

/// The number of times a path crosses each port, for ports that it crosses more than once.
#[derive(Default)]
struct Crossings(HashMap<PortId, u64>);

impl Crossings {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of(&self, port: PortId) -> u64 {
        self.0.get(&port).copied().unwrap_or(1)
    }

    /// Updates the counts from a path. Returns true if any count increased.
    fn learn(&mut self, path: &Path) -> bool {
        let mut more = false;
        for (port, times) in path.crossings() {
            if times > self.of(port) {
                self.0.insert(port, times);
                more = true;
            }
        }
        more
    }
}

impl Decider {
    /// Evaluates all applications in order of color. Each sees the reservations of those before it.
    pub fn evaluate(&mut self, now: Duration) -> Vec<Action> {
        self.wakeup = None;
        self.settle(now);
        let managed = self.managed();
        let colors: Vec<Color> = self.apps.keys().copied().collect();
        let mut actions = Vec::new();
        for color in colors {
            if actions.len() >= self.config.moves_a_round {
                // Evaluate the rest in the next round, when the effect of these moves is visible.
                self.wake_at(now + self.config.confirm / 2);
                return actions;
            }
            actions.extend(self.evaluate_app(color, &managed, now));
            self.book(color);
        }
        self.graph_changed = false;
        actions
    }

    /// Places one new application without evaluating the others, for a dry run.
    pub fn place_alone(&mut self, color: Color, now: Duration) {
        let managed = self.managed();
        self.evaluate_app(color, &managed, now);
        self.book(color);
    }

    /// Updates the ledger to the application's current reservations.
    fn book(&mut self, color: Color) {
        let app = &self.apps[&color];
        let now = app.path.iter().map(|path| (path, app.reservation()));
        let before = app.leaving.iter().map(|(path, reserved)| (path, *reserved));
        self.ledger.hold(color, now.chain(before));
    }

    fn wake_at(&mut self, at: Duration) {
        self.wakeup = Some(self.wakeup.map_or(at, |known| known.min(at)));
    }

    /// Ends the double counting for moves that the samples now show.
    fn settle(&mut self, now: Duration) {
        for (&color, app) in &mut self.apps {
            let Some(at) = app.settled_at else { continue };
            if at <= now {
                app.settled_at = None;
                app.leaving = None;
                let amount = app.reservation();
                self.ledger.hold(color, app.path.iter().map(|path| (path, amount)));
            } else {
                self.wakeup = Some(self.wakeup.map_or(at, |known| known.min(at)));
            }
        }
    }

    fn evaluate_app(&mut self, color: Color, managed: &Managed, now: Duration) -> Option<Action> {
        let functions = &self.apps[&color].demand.functions;
        if !self.layers.contains_key(functions) {
            let functions = functions.clone();
            self.layers.insert(functions.clone(), Layers::new(&self.graph, &functions));
        }
        let app = &self.apps[&color];
        if app.demand.class == Class::LowLatency {
            self.follow_igp(color, now)
        } else if let Some(arcs) = app.path.as_ref().and_then(|path| path.arcs(&self.graph)) {
            let mut relisted = None;
            if self.graph_changed || app.state == State::Unreachable {
                match self.lists(&app.demand, &arcs) {
                    Ok(lists) if lists == app.lists => {}
                    // The path stays, but the topology change requires a different segment list.
                    Ok(lists) => {
                        let (path, state) = (app.path.clone(), app.state);
                        relisted =
                            Some(self.assign(color, path, lists, state, Cause::Relisted, now));
                    }
                    Err(_) => return self.place(color, managed, Cause::Broken, now),
                }
            }
            self.judge(color, &arcs, managed, now).or(relisted)
        } else {
            let cause = if app.path.is_some() { Cause::Broken } else { Cause::New };
            self.place(color, managed, cause, now)
        }
    }

    /// A low-latency application follows the IGP's path without an SRH, whatever its load.
    fn follow_igp(&mut self, color: Color, now: Duration) -> Option<Action> {
        let app = &self.apps[&color];
        let path = igp_path(&self.graph, app.demand.from, app.demand.to);
        let was_steered = app.lists != Lists::default();
        let state = if path.is_some() { State::Admitted } else { State::Unreachable };
        if path == app.path && state == app.state && !was_steered {
            return None;
        }
        let cause = if app.path.is_some() { Cause::Broken } else { Cause::New };
        let action = self.assign(color, path, Lists::default(), state, cause, now);
        self.tell(action, was_steered, now)
    }

    /// Returns the action if there is anything to install. Otherwise no confirmation will arrive:
    /// the application has moved as soon as its routers have.
    fn tell(&mut self, action: Action, to_install: bool, now: Duration) -> Option<Action> {
        if !to_install {
            self.installed(action.color, now);
        }
        to_install.then_some(action)
    }

    /// Evaluates the current path of an application: violated, or merely worse than another.
    fn judge(
        &mut self,
        color: Color,
        arcs: &[ArcId],
        managed: &Managed,
        now: Duration,
    ) -> Option<Action> {
        let Config { confirm, starve, .. } = self.config;
        let app = &self.apps[&color];
        if app.leaving.is_some() {
            return None;
        }
        let (needed, starving) = (self.needed(app), self.is_starving(app));
        let app = self.apps.get_mut(&color).expect("the caller found it");
        let starved_at = since(&mut app.starved_since, starving, now).map(|at| at + starve);
        app.starved = starved_at.is_some_and(|at| at <= now);
        let app = &self.apps[&color];
        let limit = View::new(self, managed, app).limit(arcs, app.path.as_ref());
        let short = limit.filter(|&(_, free)| free < needed);
        let of_port = short.and_then(|(port, _)| self.loads.get(&port)).map(|load| load.stamps);

        let app = self.apps.get_mut(&color).expect("the caller found it");
        if short.is_some() && app.violated_since.is_none() {
            // Either report may have shown it first: a full link stays full while the shares of its
            // senders change.
            app.evidence = of_port.unwrap_or_default().max(app.load.stamps);
        }
        let violated_at =
            since(&mut app.violated_since, short.is_some(), now).map(|at| at + confirm);
        let starved = app.starved;
        let (Some((port, free_bps)), Some(violated_at)) = (short, violated_at) else {
            app.state = State::Admitted;
            if let Some(at) = starved_at.filter(|_| !starved) {
                self.wake_at(at);
            }
            return self.improve(color, arcs.len(), managed, now);
        };
        // A starved application has already waited long enough.
        if violated_at > now && !starved {
            self.wake_at(violated_at);
            return None;
        }
        self.leave(color, managed, Cause::Violated { port, free_bps }, now)
    }

    /// Moves a violated application to a path that covers its demand. Without such a path the
    /// application is degraded. It then moves to the best path only if that is better by the
    /// required margin for long enough.
    fn leave(
        &mut self,
        color: Color,
        managed: &Managed,
        cause: Cause,
        now: Duration,
    ) -> Option<Action> {
        let Cause::Violated { port, free_bps } = cause else { return None };
        let choice = self.choose(color, managed);
        let app = self.apps.get_mut(&color).expect("the caller found it");
        let Some(choice) = choice else {
            app.state = State::Degraded { limit: port, free_bps };
            return None;
        };
        match choice.short {
            None if Some(&choice.path) != app.path.as_ref() => {
                let Choice { path, lists, .. } = choice;
                Some(self.assign(color, Some(path), lists, State::Admitted, cause, now))
            }
            Some((limit, free))
                if free as f64 > free_bps as f64 * (1.0 + self.config.gain)
                    && free > free_bps.saturating_add(app.demand.demand_bps / 10)
                    && Some(&choice.path) != app.path.as_ref() =>
            {
                app.state = State::Degraded { limit: port, free_bps };
                self.when_ripe(color, now).then(|| {
                    let state = State::Degraded { limit, free_bps: free };
                    let Choice { path, lists, .. } = choice;
                    self.assign(color, Some(path), lists, state, Cause::Better, now)
                })
            }
            _ => {
                app.better_since = None;
                app.state = State::Degraded { limit: port, free_bps };
                None
            }
        }
    }

    /// Moves a served application to a path with fewer hops, if that path stays better.
    fn improve(
        &mut self,
        color: Color,
        hops: usize,
        managed: &Managed,
        now: Duration,
    ) -> Option<Action> {
        let choice = self.choose(color, managed).filter(|choice| {
            choice.short.is_none()
                && choice.path.hops() < hops
                && choice.path.hops() as f64 <= hops as f64 * (1.0 - self.config.gain)
        });
        let Some(choice) = choice else {
            self.apps.get_mut(&color).expect("the caller found it").better_since = None;
            return None;
        };
        self.when_ripe(color, now).then(|| {
            let Choice { path, lists, .. } = choice;
            self.assign(color, Some(path), lists, State::Admitted, Cause::Better, now)
        })
    }

    /// Returns true if a better path has existed for the hold time, and the application has been on
    /// its path for the dwell time, which doubles with each recent move.
    fn when_ripe(&mut self, color: Color, now: Duration) -> bool {
        let config = self.config;
        let app = self.apps.get_mut(&color).expect("the caller found it");
        app.recent_moves.retain(|&at| at + config.memory > now);
        let doublings = app.recent_moves.len().saturating_sub(1).min(6) as u32;
        let held = *app.better_since.get_or_insert(now) + config.hold;
        let ripe = held.max(app.assigned_at + config.dwell * 2u32.pow(doublings));
        if ripe > now {
            self.wake_at(ripe);
        }
        ripe <= now
    }

    /// Finds a path for an application that has none.
    fn place(
        &mut self,
        color: Color,
        managed: &Managed,
        cause: Cause,
        now: Duration,
    ) -> Option<Action> {
        match self.choose(color, managed) {
            Some(Choice { path, lists, short }) => {
                let state = short.map_or(State::Admitted, |(limit, free_bps)| State::Degraded {
                    limit,
                    free_bps,
                });
                let bare = lists == Lists::default() && self.apps[&color].lists == lists;
                let action = self.assign(color, Some(path), lists, state, cause, now);
                // The IGP's own path needs nothing installed.
                self.tell(action, !bare, now)
            }
            None => {
                let app = self.apps.get_mut(&color).expect("the caller found it");
                app.state = State::Unreachable;
                app.leaving = None;
                // Its load is no longer measured. Other applications see its traffic as background.
                app.load = AppLoad::default();
                if app.demand.functions.is_empty() || app.lists == Lists::default() {
                    // Keep the installed lists: packets flow immediately when the path comes back.
                    return None;
                }
                // The lists lead to withdrawn functions, whose rules may be gone, so remove them.
                let (lists, state) = (Lists::default(), State::Unreachable);
                Some(self.assign(color, None, lists, state, Cause::Broken, now))
            }
        }
    }

    /// Chooses the path with the fewest hops that covers the demand, or else the widest path; None
    /// if no path can be encoded as a segment list.
    fn choose(&self, color: Color, managed: &Managed) -> Option<Choice> {
        let app = &self.apps[&color];
        let view = View::new(self, managed, app);
        let Demand { from, to, functions, .. } = &app.demand;
        if from.index() >= self.graph.len() || to.index() >= self.graph.len() {
            return None;
        }
        let layers = self.layers.get(functions)?;
        let (start, end) = (layers.start(*from), layers.end(*to));
        let current = app.path.as_ref();
        let none = (HashSet::new(), HashSet::new());
        let needed = self.needed(app);
        let encode = |found: &Found| {
            let arcs = layers.originals(&found.arcs);
            let lists = self.lists(&app.demand, &arcs).ok()?;
            let short = view.limit(&arcs, current).filter(|&(_, free)| free < needed);
            Some(Choice { path: Path::over(&self.graph, *from, &arcs), lists, short })
        };
        // The number of times a path crosses a port is only known once a search has found it.
        let mut crossings = Crossings::default();
        let free_of = |arc, crossings: &Crossings| {
            let arc = layers.original(arc);
            view.free_on_arc(arc, current) / crossings.of(self.graph.arc(arc).port)
        };
        let covering = loop {
            let free = |arc| free_of(arc, &crossings);
            let limits = Limits {
                free: &free,
                demand: needed,
                without_arcs: &none.0,
                without_nodes: &none.1,
            };
            let found = search::fewest_hops(layers.graph(), start, end, &limits);
            let Some(found) = found else { break None };
            if !crossings.learn(&Path::over(layers.graph(), start, &found.arcs)) {
                break Some(found);
            }
        };
        if let Some(choice) = covering.as_ref().and_then(encode) {
            return Some(choice);
        }
        let free = |arc| free_of(arc, &crossings);
        let (best, _) = search::widest(layers.graph(), start, end, &free)?;
        let best = encode(&best).filter(|_| covering.is_none());
        if best.is_some() && crossings.is_empty() {
            return best;
        }
        // The first choice cannot be encoded as a segment list: take the first that can. Or a path
        // that crosses a link once may cover the demand where another that crosses it twice does
        // not.
        let others = search::alternatives(layers.graph(), start, end, self.config.alternatives);
        let mut others: Vec<Choice> =
            best.into_iter().chain(others.iter().filter_map(encode)).collect();
        let at = others.iter().position(|choice| choice.short.is_none()).or_else(|| {
            let width = |at: &usize| others[*at].short.map(|(_, free)| free);
            (0..others.len()).rev().max_by_key(width)
        })?;
        Some(others.swap_remove(at))
    }

    /// The minimum bandwidth that covers the demand.
    pub(crate) fn needed(&self, app: &App) -> u64 {
        (app.demand.demand_bps as f64 * (1.0 - self.config.tolerance)) as u64
    }

    /// Returns true if a congested path gives the application clearly less than its demand although
    /// the counters show free bandwidth, because other senders yield too slowly.
    fn is_starving(&self, app: &App) -> bool {
        let wanted = (app.demand.demand_bps as f64 * self.config.shortfall) as u64;
        app.load.rate_bps > 0
            && app.load.rate_bps < wanted
            && app.path.as_ref().is_some_and(|path| path.ports().any(|p| self.is_congested(p)))
    }

    fn assign(
        &mut self,
        color: Color,
        path: Option<Path>,
        lists: Lists,
        state: State,
        cause: Cause,
        now: Duration,
    ) -> Action {
        let app = self.apps.get_mut(&color).expect("the caller found it");
        let moved = app.path.is_some() && path != app.path;
        let decision = Decision {
            cause,
            at: now,
            before: app.path.clone(),
            after: path.clone(),
            evidence: match cause {
                Cause::Violated { .. } => app.evidence,
                _ => Stamps::default(),
            },
        };
        if moved {
            app.moves += 1;
            app.recent_moves.push(now);
            let reserved = app.reservation();
            app.leaving = app.path.take().map(|path| (path, reserved));
            // A headend that never confirms must not block further evaluation of the application.
            app.settled_at = Some(now + self.config.unconfirmed);
        }
        // A new list for the same path restarts no timer: events elsewhere must not pin the
        // application to its path.
        if app.path.is_none() {
            app.assigned_at = now;
            app.violated_since = None;
            app.starved_since = None;
            app.starved = false;
            app.better_since = None;
        }
        app.path = path;
        app.lists = lists;
        app.state = state;
        app.installed_at = None;
        app.decision = Some(decision.clone());
        Action { color, lists: app.lists.clone(), decision }
    }
}

/// Tracks the time since which `holds` has been true.
fn since(start: &mut Option<Duration>, holds: bool, now: Duration) -> Option<Duration> {
    *start = start.or(Some(now)).filter(|_| holds);
    *start
}

/// One path that the IGP uses; the first of several equal ones.
fn igp_path(graph: &Graph, from: NodeId, to: NodeId) -> Option<Path> {
    if from.index() >= graph.len() || to.index() >= graph.len() {
        return None;
    }
    let costs = igp::costs_to(graph, to);
    let mut arcs = Vec::new();
    let mut at = from;
    while at != to {
        let next = igp::next_arcs(graph, at, to, &costs).next()?;
        arcs.push(next);
        at = graph.arc(next).to;
    }
    Some(Path::over(graph, from, &arcs))
}
