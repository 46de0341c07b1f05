//! Conversion of topology file values to the emulator's settings.

use std::sync::Arc;

use emulator::queue::{CoDel, Discipline, Limit, Pie, Red};
use emulator::{Course, Filter, Rate, Settings, Shape};
use model::Bandwidth;
use model::topology::{self, Impairments, Interface, LinkChange, Queue};

use crate::recordings::{Recorded, Recordings};

/// Settings of one direction of a link, as in the topology file.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// Rate.
    pub rate: Option<Bandwidth>,
    /// Queue.
    pub queue: Queue,
    /// Impairments.
    pub impairments: Impairments,
    /// Largest MTU of its devices.
    pub mtu: u16,
    /// True if the link is down.
    pub is_down: bool,
    /// Contents of the files that it refers to, read once.
    pub recorded: Recorded,
}

/// Length of the Ethernet header.
const ETHERNET: u32 = wire::ETHERNET as u32;

impl Side {
    /// Creates the settings of an interface, given the contents of the files.
    pub(crate) fn new(interface: &Interface, recordings: &Recordings) -> Self {
        let bytes = u32::from(interface.mtu) + ETHERNET;
        Self {
            rate: interface.rate,
            queue: interface.queue,
            impairments: interface.impairments.clone(),
            mtu: interface.mtu,
            is_down: false,
            recorded: recordings.of(&interface.impairments, bytes),
        }
    }

    /// Creates settings without impairments.
    pub(crate) fn plain() -> Self {
        Self {
            rate: None,
            queue: Queue::Auto,
            impairments: Impairments::default(),
            mtu: u16::MAX,
            is_down: false,
            recorded: Recorded::default(),
        }
    }

    /// Returns the settings after changes, or the reason why the changes are invalid.
    pub(crate) fn changed(&self, changes: &[LinkChange]) -> Result<Self, String> {
        let mut side = self.clone();
        for change in changes {
            self.reject_traced_option(*change)?;
            match *change {
                LinkChange::Rate(rate) => side.rate = rate,
                LinkChange::Queue(queue, ..) => side.queue = queue,
                _ => {}
            }
            change.apply(&mut side.impairments);
        }
        if let Some(contradiction) = side.impairments.contradiction() {
            return Err(contradiction.to_string());
        }
        if side.impairments.has_opportunities() && side.rate.is_some() {
            return Err("a rate and a trace contradict each other".into());
        }
        let gives = |change: &LinkChange| {
            matches!(change, LinkChange::Queue(..)) && *change != LinkChange::NO_QUEUE
        };
        let recorded = self.recorded.course.as_ref().and_then(Course::most_bps).is_some()
            || self.recorded.opportunities.is_some();
        if changes.iter().any(gives) && side.rate.is_none() && !recorded {
            return Err("a queue without a rate never fills: set `rate=` as well".into());
        }
        Ok(side)
    }

    /// Rejects a change that the next line of a trace would silently undo.
    fn reject_traced_option(&self, change: LinkChange) -> Result<(), String> {
        let Some(course) = &self.recorded.course else { return Ok(()) };
        let option = match change {
            LinkChange::Rate(_) if course.most_bps().is_some() => "rate",
            LinkChange::Delay(_) if course.has_delays() => "delay",
            LinkChange::Loss(_) if course.has_losses() => "loss",
            _ => return Ok(()),
        };
        let trace = self.impairments.trace.as_deref().unwrap_or_default();
        let help = format!("change its column `{option}`, and bring the lab up again");
        Err(format!("the trace {trace} sets the {option}: {help}"))
    }

    /// Converts the settings to the emulator's type.
    pub(crate) fn settings(&self) -> Settings {
        let course = self.recorded.course.clone();
        let rate = self.rate();
        let limit = self.limit(&rate, course.as_ref());
        let mut impairments = emulator::Impairments::of(&self.impairments);
        impairments.jitter = self.samples().or(impairments.jitter);
        Settings {
            impairments,
            rate,
            discipline: self.discipline(limit),
            ecn: self.impairments.ecn,
            limit,
            course,
            is_down: self.is_down,
        }
    }

    /// Returns the filters.
    pub(crate) fn filters(&self) -> Vec<Filter> {
        let each = |filter: &topology::Filter| {
            // ICMP has a protocol number for each family, so it needs two filters.
            let numbers = filter.protocol.map(|p| [p.number(false), p.number(true)]);
            let mut numbers = numbers.map_or(vec![None], |both| both.map(Some).to_vec());
            numbers.dedup();
            let ports = filter.ports.map(|range| range.first..=range.last);
            let (from, to) = (filter.from, filter.to);
            numbers
                .into_iter()
                .map(move |protocol| Filter { from, to, protocol, ports: ports.clone() })
                .collect::<Vec<_>>()
        };
        self.impairments.filters.iter().flat_map(each).collect()
    }

    fn rate(&self) -> Rate {
        match (&self.recorded.opportunities, self.rate) {
            (Some(trace), _) => Rate::Recorded(Arc::clone(trace)),
            (None, Some(rate)) => Rate::Constant(rate.bps()),
            (None, None) => Rate::Unlimited,
        }
    }

    /// Returns the jitter from a file, unless the option has been replaced.
    fn samples(&self) -> Option<emulator::Jitter> {
        self.impairments.samples.as_ref()?;
        let quantiles = Arc::clone(self.recorded.samples.as_ref()?);
        Some(emulator::Jitter { spread: 1, shape: Shape::Quantiles(quantiles) })
    }

    fn limit(&self, rate: &Rate, course: Option<&Course>) -> Limit {
        let most = course.and_then(Course::most_bps);
        let bps = match rate {
            _ if most.is_some() => most.unwrap_or(0),
            Rate::Unlimited => 0,
            Rate::Constant(bps) => *bps,
            Rate::Recorded(trace) => trace.mean_bps(),
        };
        match self.queue {
            Queue::Packets(packets) => Limit::Packets(packets),
            Queue::Bytes(bytes) => Limit::Bytes(bytes.into()),
            Queue::Auto => Limit::Bytes(Queue::auto_bytes(bps)),
        }
    }

    fn discipline(&self, limit: Limit) -> Discipline {
        match self.impairments.discipline {
            topology::Discipline::DropTail => Discipline::DropTail,
            topology::Discipline::Codel => {
                let packet = u32::from(self.mtu) + ETHERNET;
                Discipline::CoDel(CoDel { packet, ..CoDel::default() })
            }
            topology::Discipline::Pie => Discipline::Pie(Pie::default()),
            topology::Discipline::Red => {
                let packet = u64::from(self.mtu) + u64::from(ETHERNET);
                Discipline::Red(Red::for_limit(match limit {
                    Limit::Packets(packets) => u64::from(packets) * packet,
                    Limit::Bytes(bytes) => bytes,
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(side: &Side, changes: &[&str]) -> Result<Side, String> {
        let changes: Vec<LinkChange> =
            changes.iter().map(|text| topology_file::link_change(text).unwrap()).collect();
        side.changed(&changes)
    }

    #[test]
    fn a_setting_from_a_trace_cannot_be_changed() {
        let moment = emulator::Moment { at: 0, delay: None, loss: None, rate: Some(9) };
        let mut side = Side::plain();
        side.impairments.trace = Some("a.csv".into());
        side.recorded.course = Some(Course::new(vec![moment], None));
        for rate in ["rate=1mbit", "rate=none"] {
            let said = changed(&side, &[rate]).unwrap_err();
            assert!(said.contains("a.csv sets the rate: change its column"), "{said}");
        }
        assert!(changed(&side, &["delay=1ms", "loss=1%", "queue=9p"]).is_ok());
        let loss = Some(emulator::Loss::Independent(emulator::Chance::new(0.5)));
        let moment = emulator::Moment { at: 0, delay: Some(1), loss, rate: None };
        side.recorded.course = Some(Course::new(vec![moment], None));
        assert!(changed(&side, &["rate=1mbit"]).is_ok());
        for change in ["delay=1ms", "loss=none"] {
            assert!(changed(&side, &[change]).unwrap_err().contains("a.csv"), "{change}");
        }
    }

    #[test]
    fn a_queue_needs_a_rate() {
        let plain = Side::plain();
        let said = changed(&plain, &["queue=9p"]).unwrap_err();
        assert!(said.contains("never fills: set `rate=`"), "{said}");
        let both = changed(&plain, &["queue=9p", "rate=1mbit"]).unwrap();
        assert!(changed(&both, &["queue=8p codel"]).is_ok());
        // Removing an option needs no other option.
        assert!(changed(&both, &["rate=none"]).is_ok() && changed(&plain, &["queue=none"]).is_ok());
    }
}
