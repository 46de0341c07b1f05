//! What a headend installs for an application (RFC 9256).

use serde::{Deserialize, Serialize};

use crate::{Application, Flow, SegmentList};

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
    /// How many colours there are for applications that are equally specific.
    pub const BAND: u32 = 1000;

    /// The colours for applications of `specificity`, 0 to [`Application::MAX_SPECIFICITY`]: the
    /// more specific ones come first.
    pub fn band(specificity: u32) -> std::ops::Range<u32> {
        let behind = Application::MAX_SPECIFICITY.saturating_sub(specificity);
        let first = Self::FIRST + behind * Self::BAND;
        first..first + Self::BAND
    }
}

/// One application's steering at one headend: its packets, and the segment lists that they take.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Policy {
    /// The policy's number at this headend.
    pub color: Color,
    /// The packets to steer.
    pub flows: Vec<Flow>,
    /// The list for IPv4 packets; it ends in a SID that decapsulates IPv4. Empty: no IPv4 flow, or
    /// with the other one the IGP's own path.
    pub ipv4: SegmentList,
    /// The list for IPv6 packets; it ends in a SID that decapsulates IPv6. Empty: no IPv6 flow, or
    /// with the other one the IGP's own path.
    pub ipv6: SegmentList,
    /// Whether its packets go by the lists or nowhere: they are to pass service functions, which the
    /// IGP's own path does not.
    #[serde(default)]
    pub closed: bool,
}

impl Policy {
    /// Whether its packets take a segment list; without one they are left to the IGP, or dropped.
    pub fn is_steered(&self) -> bool {
        !(self.ipv4.0.is_empty() && self.ipv6.0.is_empty())
    }

    /// The list that the packets of `flow` take.
    pub fn segments(&self, flow: &Flow) -> &SegmentList {
        if flow.is_ipv6() { &self.ipv6 } else { &self.ipv4 }
    }
}
