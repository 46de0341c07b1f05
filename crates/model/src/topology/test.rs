//! Conditions that must hold in the running lab.

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::Serialize;

use super::impairments::Share;
use super::quantity::{DurationText, Family, Range};
use crate::Bandwidth;

/// A condition that must hold in the running lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// Pings are answered, or not.
    Ping(Ping),
    /// A throughput is reached.
    Throughput {
        /// Sending node.
        from: String,
        /// Receiving node.
        to: String,
        /// Address family.
        family: Family,
        /// Range of the throughput.
        throughput: Range<Bandwidth>,
        /// Deadline, from the start of the test.
        within: DurationText,
    },
    /// A node has a route, or does not have it.
    Route {
        /// Node name.
        on: String,
        /// Destination prefix of the route.
        route: IpNet,
        /// True if the route must exist.
        present: bool,
        /// Neighbor that one of the next hops must lead to, if given.
        via: Option<String>,
        /// Deadline, from the start of the test.
        within: DurationText,
    },
}

/// Pings that must be answered, or must not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ping {
    /// Sending node.
    pub from: String,
    /// Node to ping.
    pub to: String,
    /// Address family; both if absent.
    pub family: Option<Family>,
    /// True if no ping may be answered.
    pub unreachable: bool,
    /// Range of the median round-trip time, if given.
    pub rtt: Option<Range<DurationText>>,
    /// Range of the fraction of pings lost, if given.
    pub loss: Option<Range<Share>>,
    /// Number of pings evaluated together.
    pub count: u32,
    /// Deadline, from the start of the test.
    pub within: DurationText,
}
