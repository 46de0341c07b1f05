//! Samples of the node's interfaces and applications, and the selection of values to push.

use std::collections::BTreeMap;
use std::time::Duration;

use bpf::Meter;
use model::{Announcement, Bandwidth, Color, FunctionState, InterfaceLoad, Telemetry};
use telemetry::{Counters, Sampler, Window};

use crate::Error;
use crate::emulated::{Emulated, Reports};

/// The sampling interval.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
/// The number of samples between complete pushes.
const PUSH_ALL: u32 = 10;
/// A change in rate by this part of the interface's capacity is pushed immediately.
const STEP: f64 = 0.02;
/// The same for unlimited interfaces and for applications.
const STEP_UNLIMITED: Bandwidth = Bandwidth::from_mbps(1);

struct Watched {
    name: String,
    /// The configured capacity. The rate of a shaping queue takes precedence.
    announced: Option<Bandwidth>,
    window: Window,
    /// The emulator's last report. Its repetition is not a new sample.
    last: Option<Counters>,
    pushed: Option<InterfaceLoad>,
}

/// Averaging windows over the node's counters.
pub(crate) struct Measure {
    sampler: Sampler,
    /// The emulator's reports on interfaces of emulated links.
    reports: Reports,
    interfaces: Vec<Watched>,
    applications: BTreeMap<Color, Window>,
    pushed: BTreeMap<Color, u64>,
    ticks: u32,
}

impl Measure {
    pub(crate) fn new(announcement: &Announcement, reports: Reports) -> Result<Self, Error> {
        let watched = |interface: &model::AnnouncedInterface| Watched {
            name: interface.name.clone(),
            announced: interface.capacity,
            window: Window::default(),
            last: None,
            pushed: None,
        };
        Ok(Self {
            sampler: Sampler::new()?,
            reports,
            interfaces: announcement.interfaces.iter().map(watched).collect(),
            applications: BTreeMap::new(),
            pushed: BTreeMap::new(),
            ticks: 0,
        })
    }

    /// Starts over for a new controller: the last samples may be old.
    pub(crate) fn begin(&mut self) {
        self.push_all();
        self.applications.clear();
        for watched in &mut self.interfaces {
            watched.window = Window::default();
            watched.last = None;
        }
    }

    /// Makes the next push complete.
    pub(crate) fn push_all(&mut self) {
        self.ticks = 0;
    }

    /// Returns true if the next push is complete, which is the case once a second.
    pub(crate) fn is_whole_second(&self) -> bool {
        self.ticks.is_multiple_of(PUSH_ALL)
    }

    /// Sets the current state and capacity of the interfaces in an announcement: a link that is
    /// down or was narrowed must not look intact until the first sample.
    pub(crate) fn describe(&mut self, announcement: &mut Announcement) -> Result<(), Error> {
        let samples = self.sampler.sample()?;
        for (interface, watched) in announcement.interfaces.iter_mut().zip(&mut self.interfaces) {
            let found = samples.iter().map(|s| &s.counters).find(|c| c.name == interface.name);
            interface.up = found.is_some_and(|found| found.carrier);
            interface.capacity = match self.reports.of(&interface.name) {
                Some(emulated) => emulated.rate,
                None => watched.capacity(found),
            };
        }
        Ok(())
    }

    /// Takes a sample and returns the telemetry to push, if any; `functions` are the function
    /// states to report.
    pub(crate) fn tick(
        &mut self,
        meter: &Meter,
        functions: Vec<FunctionState>,
    ) -> Result<Option<Telemetry>, Error> {
        let all = self.ticks.is_multiple_of(PUSH_ALL);
        self.ticks = self.ticks.wrapping_add(1);
        let samples = self.sampler.sample()?;
        let sampled_at_ns = samples.first().map_or_else(api::now_ns, |sample| sample.sampled_ns);
        let mut interfaces = Vec::new();
        for watched in &mut self.interfaces {
            let counters = samples.iter().map(|s| &s.counters).find(|c| c.name == watched.name);
            let emulated = self.reports.of(&watched.name);
            let load = watched.load(counters, sampled_at_ns, emulated);
            if load.up && !watched.window.has_rate() {
                // A rate needs two samples, and zero would mean an idle link.
                continue;
            }
            if all || watched.pushed.as_ref().is_none_or(|pushed| is_news(pushed, &load)) {
                watched.pushed = Some(load.clone());
                interfaces.push(load);
            }
        }
        // Always report applications: subtracting their load from a link's load is only valid for
        // samples of the same time.
        let applications = self.count(meter, sampled_at_ns, true)?;
        let worth_it =
            all || !interfaces.is_empty() || !applications.is_empty() || !functions.is_empty();
        Ok(worth_it.then_some(Telemetry { sampled_at_ns, interfaces, applications, functions }))
    }

    /// The rates of the applications that changed, or of all.
    fn count(&mut self, meter: &Meter, at_ns: u64, all: bool) -> Result<Vec<(Color, u64)>, Error> {
        let counts = meter.read()?;
        let counted = |color: &Color| counts.iter().any(|(other, _)| other == color);
        self.applications.retain(|color, _| counted(color));
        self.pushed.retain(|color, _| counted(color));
        let mut rates = Vec::new();
        for (color, count) in &counts {
            let is_new = !self.applications.contains_key(color);
            let window = self.applications.entry(*color).or_default();
            let (bytes, packets) = (count.bytes, count.packets);
            window.push(Counters { at_ns, bytes, packets, ..Counters::default() });
            if is_new {
                // A rate needs two samples, and zero would mean an idle application.
                continue;
            }
            let rate = window.load().rate_bps;
            let before = self.pushed.get(color).copied();
            if all || before.is_none_or(|before| before.abs_diff(rate) > STEP_UNLIMITED.bps()) {
                self.pushed.insert(*color, rate);
                rates.push((*color, rate));
            }
        }
        Ok(rates)
    }
}

impl Watched {
    /// The capacity. Once a queue has shaped the interface, only the queue determines it, even
    /// after it is removed.
    fn capacity(&mut self, found: Option<&telemetry::Sample>) -> Option<Bandwidth> {
        let shaped = found.and_then(|found| found.rate);
        if shaped.is_some() {
            self.announced = None;
        }
        shaped.or(self.announced)
    }

    /// A missing interface counts as one without a carrier. For an emulated link, the kernel only
    /// knows the carrier.
    fn load(
        &mut self,
        counters: Option<&telemetry::Sample>,
        at_ns: u64,
        emulated: Option<Emulated>,
    ) -> InterfaceLoad {
        match (emulated, counters) {
            (Some(emulated), _) => {
                if self.last != Some(emulated.counters) {
                    self.window.push(emulated.counters);
                    self.last = Some(emulated.counters);
                }
            }
            (None, Some(found)) => self.window.push(Counters {
                at_ns,
                bytes: found.tx_bytes,
                packets: found.tx_packets,
                drops: found.drops,
                lost: 0,
                backlog_bytes: found.backlog_bytes,
            }),
            (None, None) => {}
        }
        let load = self.window.load();
        InterfaceLoad {
            name: self.name.clone(),
            up: counters.is_some_and(|found| found.carrier),
            capacity: match emulated {
                Some(emulated) => emulated.rate,
                None => self.capacity(counters),
            },
            rate_bps: load.rate_bps,
            loss: load.loss,
            backlog_bytes: load.backlog_bytes,
            congested: load.congested,
        }
    }
}

fn is_news(pushed: &InterfaceLoad, load: &InterfaceLoad) -> bool {
    let step = load.capacity.map_or(STEP_UNLIMITED.bps() as f64, |c| c.bps() as f64 * STEP);
    pushed.up != load.up
        || pushed.capacity != load.capacity
        || pushed.congested != load.congested
        || (pushed.rate_bps.abs_diff(load.rate_bps) as f64) > step
        || (pushed.loss - load.loss).abs() > STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_loads_are_sent() {
        let load = InterfaceLoad {
            name: "r2".into(),
            up: true,
            capacity: Some(Bandwidth::from_mbps(100)),
            rate_bps: 50_000_000,
            loss: 0.0,
            backlog_bytes: 0,
            congested: false,
        };
        assert!(!is_news(&load, &load));
        assert!(!is_news(&load, &InterfaceLoad { rate_bps: 51_900_000, ..load.clone() }));
        assert!(is_news(&load, &InterfaceLoad { rate_bps: 52_100_000, ..load.clone() }));
        assert!(is_news(&load, &InterfaceLoad { up: false, ..load.clone() }));
        assert!(is_news(&load, &InterfaceLoad { congested: true, ..load.clone() }));
        assert!(is_news(&load, &InterfaceLoad { capacity: None, ..load.clone() }));
        assert!(is_news(&load, &InterfaceLoad { loss: 0.5, ..load.clone() }));
    }
}
