//! A lab's events as steps ordered by time, with the outcome of each.

use std::time::Duration;

use model::topology::{Action, Event, LinkChange, Topology, Traffic};
use model::{Bandwidth, Occurrence};
use output::events::JournalEntry;
use serde::Serialize;

use crate::Lab;
use crate::life::journal::{self, Happening};
use crate::life::state::State;

/// An action at a point in time. An event consists of one or two steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Time since the lab became ready.
    pub at: Duration,
    /// Link name.
    pub link: String,
    /// True if the link is emulated.
    pub emulated: bool,
    /// The sending node of the affected direction; none for all directions of the link.
    pub from: Option<String>,
    /// The action.
    pub deed: Deed,
}

/// Action of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Sets the link up.
    Up {
        /// True if the ends did not see that it was down.
        silent: bool,
    },
    /// Sets the link down.
    Down {
        /// True if the ends do not see that.
        silent: bool,
    },
    /// Changes the rate of a kernel link.
    Rate(Option<Bandwidth>),
    /// Changes an emulated link.
    Set(Vec<LinkChange>),
    /// Starts cross traffic.
    Traffic(Traffic),
}

impl Deed {
    /// A description of the action.
    pub fn words(&self) -> String {
        let silently = |silent: bool| if silent { " (silent)" } else { "" };
        match self {
            Self::Up { silent } => format!("up{}", silently(*silent)),
            Self::Down { silent } => format!("down{}", silently(*silent)),
            Self::Rate(rate) => LinkChange::Rate(*rate).words(),
            Self::Set(changes) => {
                let words: Vec<String> = changes.iter().map(LinkChange::words).collect();
                words.join(", ")
            }
            Self::Traffic(traffic) => format!("traffic {traffic}"),
        }
    }

    /// Order of steps at the same time: a link is set up before it is set down again.
    fn rank(&self) -> u8 {
        match self {
            Self::Up { .. } => 0,
            Self::Down { .. } => 2,
            _ => 1,
        }
    }
}

/// The steps of a network's events, in a deterministic order.
pub fn steps(topology: &Topology) -> Vec<Step> {
    let mut steps: Vec<Step> =
        topology.events.iter().flat_map(|event| of_event(topology, event)).collect();
    // The sort is stable: ties keep the file's order.
    steps.sort_by_key(|step| (step.at, step.deed.rank()));
    steps
}

fn of_event(topology: &Topology, event: &Event) -> Vec<Step> {
    let Event { at, link, from, action } = event;
    let segment = topology.segment(link);
    let emulated = segment.is_some_and(|segment| topology.is_emulated(segment));
    let step = |at, deed| Step { at, link: link.clone(), emulated, from: from.clone(), deed };
    match action {
        Action::Down { duration, silent } => vec![
            step(*at, Deed::Down { silent: *silent }),
            step(at.saturating_add(*duration), Deed::Up { silent: *silent }),
        ],
        Action::Set(changes) if emulated => vec![step(*at, Deed::Set(changes.clone()))],
        Action::Set(changes) => {
            // Validation guarantees that the only change is a rate.
            let rate = |change: &LinkChange| match change {
                LinkChange::Rate(rate) => Some(step(*at, Deed::Rate(*rate))),
                _ => None,
            };
            changes.iter().filter_map(rate).collect()
        }
        Action::Traffic(traffic) => vec![step(*at, Deed::Traffic(*traffic))],
    }
}

/// Outcome of a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Outcome {
    /// Not due yet.
    ToCome,
    /// Carried out.
    Done {
        /// Time at which it was carried out, in seconds since the lab became ready.
        done_at: f64,
    },
    /// Failed.
    Failed {
        /// Time of the failure, in seconds since the lab became ready.
        done_at: f64,
        /// The error.
        error: String,
    },
}

/// Past and future events of a lab.
#[derive(Debug, Clone)]
pub struct History {
    /// Time since the lab became ready; none if it is not ready.
    pub ready_for: Option<Duration>,
    /// Steps of its timeline.
    pub steps: Vec<(Step, Outcome)>,
    /// Unexpected events.
    pub others: Vec<JournalEntry>,
}

impl History {
    /// True if a user has stopped the cross traffic of a step after it started.
    pub fn is_stopped(&self, number: usize) -> bool {
        let Some((Step { link, from: Some(from), deed: Deed::Traffic(_), .. }, outcome)) =
            self.steps.get(number)
        else {
            return false;
        };
        let (Outcome::Done { done_at } | Outcome::Failed { done_at, .. }) = outcome else {
            return false;
        };
        let what = Occurrence::TrafficStopped { link: link.clone(), from: from.clone() };
        self.others.iter().any(|entry| entry.what == what && entry.at >= Some(*done_at))
    }
}

impl Lab {
    /// Past and future events of the lab.
    pub fn history(&self) -> History {
        let mut steps: Vec<(Step, Outcome)> =
            steps(&self.topology).into_iter().map(|step| (step, Outcome::ToCome)).collect();
        let mut others = Vec::new();
        for entry in journal::read(&self.directory) {
            let done_at = entry.at.unwrap_or(0.0);
            match entry.what {
                Happening::Step { number, error } => {
                    let Some((_, progress)) = steps.get_mut(number) else { continue };
                    *progress = match error {
                        None => Outcome::Done { done_at },
                        Some(error) => Outcome::Failed { done_at, error },
                    };
                }
                Happening::Other(what) => others.push(JournalEntry { at: entry.at, what }),
            }
        }
        History {
            ready_for: self.ready_since().map(|at| journal::now().saturating_sub(at)),
            steps,
            others,
        }
    }

    /// Time at which the lab became ready, on the clock of [`journal::now`].
    pub fn ready_since(&self) -> Option<Duration> {
        State::read(&self.directory)?.ready_ns.map(Duration::from_nanos)
    }

    /// Records an event that has just happened.
    pub fn record(&self, what: impl Into<Happening>) -> Result<(), crate::Error> {
        let since = self.ready_since();
        let at = since.map(|since| journal::now().saturating_sub(since).as_secs_f64());
        journal::append(&self.directory, &journal::Entry { at, what: what.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_become_steps_in_the_order_of_time() {
        let text = "name: a\nnodes: {h1: {}, r1: {router: linux}, h2: {}}\n\
                    links: [h1-r1, r1-h2: {delay: 5ms}]\nevents:\n\
                    - {at: 5s, link: h1-r1, down: 1s}\n\
                    - {at: 4s, link: r1-h1, down: 1s}\n\
                    - {at: 5s, link: r1-h2, set: {delay: 40ms, loss: 1%}, from: r1}\n\
                    - {at: 1s, link: h1-r1, set: {rate: 10mbit}}\n\
                    - {at: 2s, link: h1-r1, set: {rate: none}}\n";
        let topology = topology_file::parse("a", text).unwrap();
        let said: Vec<String> = steps(&topology)
            .iter()
            .map(|step| format!("{:?} {} {}", step.at, step.link, step.deed.words()))
            .collect();
        assert_eq!(
            said,
            [
                "1s h1-r1 rate 10mbit",
                "2s h1-r1 rate none",
                "4s h1-r1 down",
                // Set up first, then down again.
                "5s h1-r1 up",
                "5s r1-h2 delay 40ms, loss 1%",
                "5s h1-r1 down",
                "6s h1-r1 up",
            ]
        );
    }

    #[test]
    fn traffic_is_stopped_by_a_later_event_of_its_direction() {
        let event = |at: u8| {
            format!("- {{at: {at}s, link: h1-h2, from: h1, traffic: {{rate: 1mbit, for: 60s}}}}\n")
        };
        let text = "name: a\nnodes: {h1: {}, h2: {}}\nlinks: [h1-h2: {delay: 5ms}]\nevents:\n";
        let text = format!("{text}{}{}{}", event(1), event(5), event(9));
        let topology = topology_file::parse("a", &text).unwrap();
        let outcomes = [1.1, 5.1].map(|done_at| Outcome::Done { done_at });
        let outcomes = outcomes.into_iter().chain([Outcome::ToCome]);
        let stop = |at: f64, from: &str| {
            let (link, from) = ("h1-h2".into(), from.into());
            JournalEntry { at: Some(at), what: Occurrence::TrafficStopped { link, from } }
        };
        let history = History {
            ready_for: None,
            steps: steps(&topology).into_iter().zip(outcomes).collect(),
            others: vec![stop(0.5, "h1"), stop(4.0, "h1"), stop(6.0, "h2")],
        };
        assert_eq!(
            [0, 1, 2, 3].map(|number| history.is_stopped(number)),
            [true, false, false, false]
        );
    }
}
