//! Impairments of one direction of a link.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity::{DurationText, duration_text, parse_duration};
use crate::{PortRange, Protocol};

/// A fraction of packets, in billionths.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Share(u32);

impl Share {
    /// No packets.
    pub const NONE: Self = Self(0);
    /// All packets.
    pub const ALL: Self = Self(1_000_000_000);

    /// Converts a percentage from 0 to 100; other values return none.
    pub fn from_percent(percent: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percent).then(|| Self((percent * 1e7).round() as u32))
    }

    /// The fraction as a number from 0 to 1.
    pub fn part(self) -> f64 {
        f64::from(self.0) / 1e9
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 1e7)
    }
}

/// Shape of a delay distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// Normal distribution; the jitter is the standard deviation.
    #[default]
    Normal,
    /// Pareto distribution with a long tail; the jitter is the standard deviation.
    Pareto,
    /// Uniform distribution within the jitter on either side.
    Uniform,
}

impl Shape {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Pareto => "pareto",
            Self::Uniform => "uniform",
        }
    }
}

/// Delay variation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Jitter {
    /// Width of the distribution.
    #[serde(serialize_with = "duration_text", deserialize_with = "parse_duration")]
    #[schemars(with = "DurationText")]
    pub spread: Duration,
    /// Shape of the distribution.
    pub shape: Shape,
}

/// Loss model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Independent losses.
    Independent(Share),
    /// Gilbert-Elliott model of bursts: transitions from good to bad with probability `p`, back
    /// with `r`. By default all packets are lost in the bad state, and none in the good state.
    GilbertElliott {
        /// Probability of a transition from good to bad.
        p: Share,
        /// Probability of a transition from bad to good.
        r: Share,
        /// Loss in the bad state.
        bad: Share,
        /// Loss in the good state.
        good: Share,
    },
}

impl Loss {
    /// Long-term average of the loss.
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

/// Queueing discipline: drop policy before the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Discipline {
    /// Tail drop only.
    #[default]
    DropTail,
    /// Random early detection.
    Red,
    /// Controlled delay.
    Codel,
    /// Proportional integral controller enhanced.
    Pie,
}

impl Discipline {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Red => "red",
            Self::Codel => "codel",
            Self::Pie => "pie",
        }
    }
}

/// A filter for packets to drop: those that match all given fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Filter {
    /// Source prefix.
    pub from: Option<IpNet>,
    /// Destination prefix.
    pub to: Option<IpNet>,
    /// Transport protocol.
    pub protocol: Option<Protocol>,
    /// Destination ports.
    pub ports: Option<PortRange>,
}

/// Impairments of one direction of a link, besides its rate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Impairments {
    /// Added delay.
    #[serde(serialize_with = "duration_text", deserialize_with = "parse_duration")]
    #[schemars(with = "DurationText")]
    pub delay: Duration,
    /// Delay variation.
    pub jitter: Option<Jitter>,
    /// File of additional delays, which replaces the jitter. All members of a LAN share the name.
    pub samples: Option<Arc<str>>,
    /// Loss model.
    pub loss: Loss,
    /// Fraction of packets that overtake others.
    pub reorder: Share,
    /// Fraction of packets that are duplicated.
    pub duplicate: Share,
    /// Fraction of packets with a corrupted bit.
    pub corrupt: Share,
    /// Queueing discipline at the rate limit.
    pub discipline: Discipline,
    /// True to mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// File of packet departure times, which replaces the rate; or, as CSV, of link properties over
    /// time. All members of a LAN share the name.
    pub trace: Option<Arc<str>>,
    /// Filters for packets to drop.
    pub filters: Vec<Filter>,
}

/// The topology file's syntax: `delay 20ms, jitter 2ms normal, loss 1%`; empty without impairments.
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
    /// True if a trace determines when packets leave, which excludes a rate.
    pub fn has_opportunities(&self) -> bool {
        self.trace.as_ref().is_some_and(|file| !is_course(file))
    }

    /// True if there are no impairments, so that a kernel link suffices.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// True if a trace file is CSV.
pub fn is_course(file: &str) -> bool {
    file.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("csv"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_filter_takes_the_singular() {
        let filter = Filter { from: None, to: None, protocol: Some(Protocol::Tcp), ports: None };
        let said = |number| {
            let filters = vec![filter.clone(); number];
            Impairments { filters, ..Impairments::default() }.to_string()
        };
        assert_eq!([0, 1, 2].map(said), ["", "1 filter", "2 filters"]);
    }
}
