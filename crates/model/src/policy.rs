//! What a headend installs for an application (RFC 9256).

use serde::{Deserialize, Serialize};

use crate::{Flow, SegmentList};

/// The number that stands for an application's intent at its headend (RFC 9256 section 2.1).
/// The headend uses it as the number of the application's routing table as well, so it stays
/// within [`Color::FIRST`] and [`Color::LAST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Color(pub u32);

impl Color {
    /// The first colour, and the first table number, that is Kaido's.
    pub const FIRST: u32 = 7000;
    /// The last colour, and the last table number, that is Kaido's.
    pub const LAST: u32 = 15_999;
}

/// One application's steering at one headend: its packets, and the segment lists that they take.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Policy {
    /// The policy's number at this headend.
    pub color: Color,
    /// The packets to steer.
    pub flows: Vec<Flow>,
    /// The list for IPv4 packets; it ends in a SID that decapsulates IPv4. Empty: no IPv4 flow.
    pub ipv4: SegmentList,
    /// The list for IPv6 packets; it ends in a SID that decapsulates IPv6. Empty: no IPv6 flow.
    pub ipv6: SegmentList,
}

impl Policy {
    /// The list that the packets of `flow` take.
    pub fn segments(&self, flow: &Flow) -> &SegmentList {
        if flow.is_ipv6() { &self.ipv6 } else { &self.ipv4 }
    }
}
