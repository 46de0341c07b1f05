//! A lab's events as steps in the order of time, and what has become of each.

use std::time::Duration;

use model::Bandwidth;
use model::topology::{Action, Event, LinkChange, Topology, Traffic};
use serde::Serialize;

use crate::Lab;
use crate::journal::{self, Happening};
use crate::state::State;

/// One thing to be done at one moment. An event is one or two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// When, counted from when the lab is ready.
    pub at: Duration,
    /// The link's name.
    pub link: String,
    /// Whether the emulator moves its packets.
    pub emulated: bool,
    /// The node whose sending it is about; none for all of the link's.
    pub from: Option<String>,
    /// What is done.
    pub deed: Deed,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Mends the link.
    Up {
        /// Whether no end saw that it was cut.
        silent: bool,
    },
    /// Cuts the link.
    Down {
        /// Whether no end sees it.
        silent: bool,
    },
    /// Changes a link of the kernel's own.
    Rate(Option<Bandwidth>),
    /// Changes an emulated link.
    Set(Vec<LinkChange>),
    /// Adds packets of others.
    Traffic(Traffic),
}

impl Deed {
    /// In words.
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

    /// What comes first at one moment: a link is mended before it is cut again.
    fn rank(&self) -> u8 {
        match self {
            Self::Up { .. } => 0,
            Self::Down { .. } => 2,
            _ => 1,
        }
    }
}

/// The steps of a network's events, in their order: the same file always has the same.
pub fn steps(topology: &Topology) -> Vec<Step> {
    let mut steps: Vec<Step> =
        topology.events.iter().flat_map(|event| of_event(topology, event)).collect();
    // Of the same moment and kind, in the file's order.
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
            // The file's rules leave a rate, and nothing else.
            let rate = |change: &LinkChange| match change {
                LinkChange::Rate(rate) => Some(step(*at, Deed::Rate(*rate))),
                _ => None,
            };
            changes.iter().filter_map(rate).collect()
        }
        Action::Traffic(traffic) => vec![step(*at, Deed::Traffic(*traffic))],
    }
}

/// What has become of a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Outcome {
    /// It is to come.
    ToCome,
    /// It was done.
    Done {
        /// When, in seconds since the lab was ready.
        done_at: f64,
    },
    /// It could not be done.
    Failed {
        /// When, in seconds since the lab was ready.
        done_at: f64,
        /// Why.
        error: String,
    },
}

/// What has happened to a lab, and what is to come.
#[derive(Debug, Clone)]
pub struct History {
    /// For how long the lab has been ready; none while it is not.
    pub ready_for: Option<Duration>,
    /// The steps of its timeline.
    pub steps: Vec<(Step, Outcome)>,
    /// What nobody asked for.
    pub others: Vec<journal::Entry>,
}

impl History {
    /// Whether somebody has ended the cross traffic of a step since it began.
    pub fn is_stopped(&self, number: usize) -> bool {
        let Some((Step { link, from: Some(from), deed: Deed::Traffic(_), .. }, outcome)) =
            self.steps.get(number)
        else {
            return false;
        };
        let (Outcome::Done { done_at } | Outcome::Failed { done_at, .. }) = outcome else {
            return false;
        };
        let what = Happening::TrafficStopped { link: link.clone(), from: from.clone() };
        self.others.iter().any(|entry| entry.what == what && entry.at >= Some(*done_at))
    }
}

impl Lab {
    /// What has happened to it, and what is to come.
    pub fn history(&self) -> History {
        let mut steps: Vec<(Step, Outcome)> =
            steps(&self.topology).into_iter().map(|step| (step, Outcome::ToCome)).collect();
        let mut others = Vec::new();
        for entry in journal::read(&self.folder) {
            let done_at = entry.at.unwrap_or(0.0);
            match entry.what {
                Happening::Step { number, error } => {
                    let Some((_, progress)) = steps.get_mut(number) else { continue };
                    *progress = match error {
                        None => Outcome::Done { done_at },
                        Some(error) => Outcome::Failed { done_at, error },
                    };
                }
                _ => others.push(entry),
            }
        }
        History {
            ready_for: self.ready_since().map(|at| journal::now().saturating_sub(at)),
            steps,
            others,
        }
    }

    /// When the lab became ready, on the clock of [`journal::now`].
    pub fn ready_since(&self) -> Option<Duration> {
        State::read(&self.folder)?.ready_ns.map(Duration::from_nanos)
    }

    /// Writes down that something has happened now.
    pub fn record(&self, what: Happening) -> Result<(), crate::Error> {
        let since = self.ready_since();
        let at = since.map(|since| journal::now().saturating_sub(since).as_secs_f64());
        journal::append(&self.folder, &journal::Entry { at, what })
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
        let topology = model::topology::parse("a", text).unwrap();
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
                // Mended first, then cut again.
                "5s h1-r1 up",
                "5s r1-h2 delay 40ms, loss 1%",
                "5s h1-r1 down",
                "6s h1-r1 up",
            ]
        );
    }

    #[test]
    fn traffic_is_stopped_by_what_came_behind_it_in_its_direction() {
        let event = |at: u8| {
            format!("- {{at: {at}s, link: h1-h2, from: h1, traffic: {{rate: 1mbit, for: 60s}}}}\n")
        };
        let text = "name: a\nnodes: {h1: {}, h2: {}}\nlinks: [h1-h2: {delay: 5ms}]\nevents:\n";
        let text = format!("{text}{}{}{}", event(1), event(5), event(9));
        let topology = model::topology::parse("a", &text).unwrap();
        let outcomes = [1.1, 5.1].map(|done_at| Outcome::Done { done_at });
        let outcomes = outcomes.into_iter().chain([Outcome::ToCome]);
        let stop = |at: f64, from: &str| {
            let (link, from) = ("h1-h2".into(), from.into());
            journal::Entry { at: Some(at), what: Happening::TrafficStopped { link, from } }
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
