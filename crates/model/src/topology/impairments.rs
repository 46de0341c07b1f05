//! What a link does to packets besides carrying them: one direction of it.

use std::fmt;
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::{PortRange, Protocol};

/// A part of all packets, in billionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(u32);

impl Share {
    /// No packet.
    pub const NONE: Self = Self(0);
    /// Every packet.
    pub const ALL: Self = Self(1_000_000_000);

    /// Of a number between 0 and 100; others there are none of.
    pub fn from_percent(percent: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percent).then(|| Self((percent * 1e7).round() as u32))
    }

    /// As a part of one.
    pub fn part(self) -> f64 {
        f64::from(self.0) / 1e9
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 1e7)
    }
}

/// How a delay is spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// Gauss's; the jitter is the standard deviation.
    #[default]
    Normal,
    /// A few packets are very late; the jitter is the standard deviation.
    Pareto,
    /// Anything within the jitter on either side.
    Uniform,
}

impl Shape {
    /// As files name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Pareto => "pareto",
            Self::Uniform => "uniform",
        }
    }
}

/// By how much a delay varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jitter {
    /// How wide.
    pub spread: Duration,
    /// How.
    pub shape: Shape,
}

/// Which packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Each by itself.
    Independent(Share),
    /// In bursts: good to bad with `p`, back with `r`; in the bad state everything is lost, unless
    /// `bad` says how much, and in the good one nothing, unless `good` does.
    GilbertElliott {
        /// From good to bad.
        p: Share,
        /// From bad to good.
        r: Share,
        /// The part that is lost in the bad state.
        bad: Share,
        /// The part that is lost in the good state.
        good: Share,
    },
}

impl Loss {
    /// The part of packets that are lost in the long run.
    pub fn part(self) -> f64 {
        match self {
            Self::Independent(share) => share.part(),
            Self::GilbertElliott { p, r, bad, good } => {
                let (p, r) = (p.part(), r.part());
                let is_bad = if p == 0.0 { 0.0 } else { p / (p + r) };
                is_bad * bad.part() + (1.0 - is_bad) * good.part()
            }
        }
    }
}

impl Default for Loss {
    fn default() -> Self {
        Self::Independent(Share::NONE)
    }
}

/// What is dropped of a queue before it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discipline {
    /// Nothing.
    #[default]
    DropTail,
    /// Random early detection.
    Red,
    /// Controlled delay.
    Codel,
    /// The proportional integral controller.
    Pie,
}

impl Discipline {
    /// As files name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Red => "red",
            Self::Codel => "codel",
            Self::Pie => "pie",
        }
    }
}

/// Packets that do not pass a link: those of which all that is given is true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Packets from here.
    pub from: Option<IpNet>,
    /// Packets to here.
    pub to: Option<IpNet>,
    /// Packets of this protocol.
    pub protocol: Option<Protocol>,
    /// Packets to these ports.
    pub ports: Option<PortRange>,
}

/// What one direction of a link does beside its rate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Impairments {
    /// How much later packets arrive.
    pub delay: Duration,
    /// By how much that varies.
    pub jitter: Option<Jitter>,
    /// A file of delays that come on top, in the place of a jitter.
    pub samples: Option<String>,
    /// Which packets are lost.
    pub loss: Loss,
    /// How many packets overtake others.
    pub reorder: Share,
    /// How many packets arrive twice.
    pub duplicate: Share,
    /// How many packets arrive with a wrong bit.
    pub corrupt: Share,
    /// What is dropped of the queue in front of the rate before it is full.
    pub discipline: Discipline,
    /// Whether packets are marked instead, where their ends heed that.
    pub ecn: bool,
    /// A file of times at which packets leave, in the place of a rate; or, as CSV, of what the link does
    /// over time.
    pub trace: Option<String>,
    /// The packets that do not pass.
    pub filters: Vec<Filter>,
}

/// In the topology file's words: `delay 20ms, jitter 2ms normal, loss 1%`; nothing if there are none.
impl fmt::Display for Impairments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { delay, jitter, samples, loss, reorder, duplicate, corrupt, .. } = self;
        let Self { discipline, ecn, trace, filters, .. } = self;
        let mut parts = Vec::new();
        parts.extend(trace.as_ref().map(|file| format!("trace {file}")));
        if *discipline != Discipline::DropTail {
            let ecn = if *ecn { " ecn" } else { "" };
            parts.push(format!("{}{ecn}", discipline.name()));
        }
        if !delay.is_zero() {
            parts.push(format!("delay {delay:?}"));
        }
        parts.extend(jitter.map(|j| format!("jitter {:?} {}", j.spread, j.shape.name())));
        parts.extend(samples.as_ref().map(|file| format!("jitter of {file}")));
        parts.extend(match loss {
            Loss::Independent(Share::NONE) => None,
            Loss::Independent(share) => Some(format!("loss {share}")),
            Loss::GilbertElliott { p, r, .. } => Some(format!("loss in bursts {p}/{r}")),
        });
        for (name, share) in [("reorder", reorder), ("duplicate", duplicate), ("corrupt", corrupt)]
        {
            if *share > Share::NONE {
                parts.push(format!("{name} {share}"));
            }
        }
        match filters.len() {
            0 => {}
            1 => parts.push("1 filter".into()),
            more => parts.push(format!("{more} filters")),
        }
        f.write_str(&parts.join(", "))
    }
}

impl Impairments {
    /// Whether it has a trace that says when packets leave, and leaves no room for a rate.
    pub fn has_opportunities(&self) -> bool {
        self.trace.as_ref().is_some_and(|file| !is_course(file))
    }

    /// Whether there are any: what there is none of, the kernel's own links do.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether a trace's file is CSV.
pub fn is_course(file: &str) -> bool {
    file.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("csv"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_filter_is_no_plural() {
        let filter = Filter { from: None, to: None, protocol: Some(Protocol::Tcp), ports: None };
        let said = |number| {
            let filters = vec![filter.clone(); number];
            Impairments { filters, ..Impairments::default() }.to_string()
        };
        assert_eq!([0, 1, 2].map(said), ["", "1 filter", "2 filters"]);
    }
}
