//! What must hold in the running lab.

use std::time::Duration;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::impairments::Share;
use super::units::{Range, duration_text};
use crate::Bandwidth;

/// Something that must hold in the running lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// Pings are answered, or not.
    Ping(Ping),
    /// A throughput is reached.
    Throughput {
        /// The node that sends.
        from: String,
        /// The node that receives.
        to: String,
        /// Over which protocol.
        family: Family,
        /// The throughput.
        throughput: Range<Bandwidth>,
        /// How soon it must hold.
        within: TestDuration,
    },
    /// A node has a route, or does not.
    Route {
        /// The node.
        on: String,
        /// The route's destination.
        route: IpNet,
        /// Whether the route is to be there.
        present: bool,
        /// The neighbour that one of its next hops is to lead to, if that matters.
        via: Option<String>,
        /// How soon it must hold.
        within: TestDuration,
    },
}

/// Pings that are answered, or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ping {
    /// The node that pings.
    pub from: String,
    /// The node that answers.
    pub to: String,
    /// Over which protocol; over both when absent.
    pub family: Option<Family>,
    /// Whether no ping is to be answered.
    pub unreachable: bool,
    /// The round-trip time, if it matters: the median's.
    pub rtt: Option<Range<TestDuration>>,
    /// How many may be lost, if it matters.
    pub loss: Option<Range<Share>>,
    /// How many pings are looked at together.
    pub count: u32,
    /// How soon it must hold.
    pub within: TestDuration,
}

/// An address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl Family {
    /// Whether it is IPv6.
    pub fn is_ipv6(self) -> bool {
        self == Self::Ipv6
    }
}

/// A duration of a test; written with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct TestDuration(#[serde(serialize_with = "duration_text")] pub Duration);
