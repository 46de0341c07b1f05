//! SR policies that a headend installs for applications (RFC 9256).

use serde::{Deserialize, Serialize};
use srv6::SegmentList;

use crate::{Application, Flow};

/// The color that identifies an application's intent at its headend (RFC 9256 section 2.1). The
/// headend also uses it as the ID of the application's routing table, so it is between
/// [`Color::FIRST`] and [`Color::LAST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Color(pub u32);

impl Color {
    /// First color, and first table ID, reserved for Kaido.
    pub const FIRST: u32 = 7000;
    /// Last color, and last table ID, reserved for Kaido.
    pub const LAST: u32 = 15_999;
    /// Number of colors for applications of the same specificity.
    pub const BAND: u32 = 1000;

    /// The colors for applications of `specificity`, 0 to [`Application::MAX_SPECIFICITY`]. More
    /// specific applications have lower colors.
    pub fn band(specificity: u32) -> std::ops::Range<u32> {
        let behind = Application::MAX_SPECIFICITY.saturating_sub(specificity);
        let first = Self::FIRST + behind * Self::BAND;
        first..first + Self::BAND
    }
}

/// Steering of one application at one headend: its packets, and their segment lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Policy {
    /// Color of the policy at this headend.
    pub color: Color,
    /// Packets to steer.
    pub flows: Vec<Flow>,
    /// Segment list for IPv4 packets; it ends with a SID that decapsulates IPv4. Empty if there is
    /// no IPv4 flow; if both lists are empty, packets take the IGP's own path.
    pub ipv4: SegmentList,
    /// Segment list for IPv6 packets; it ends with a SID that decapsulates IPv6. Empty if there is
    /// no IPv6 flow; if both lists are empty, packets take the IGP's own path.
    pub ipv6: SegmentList,
    /// Drop-Upon-Invalid (RFC 9256 section 8.2): packets without a segment list are dropped,
    /// because they must traverse service functions, which are not on the IGP's own path.
    #[serde(default)]
    pub closed: bool,
}

impl Policy {
    /// True if its packets have a segment list; otherwise they are routed by the IGP, or dropped.
    pub fn is_steered(&self) -> bool {
        !(self.ipv4.0.is_empty() && self.ipv6.0.is_empty())
    }

    /// The segment list for the packets of `flow`.
    pub fn segments(&self, flow: &Flow) -> &SegmentList {
        if flow.is_ipv6() { &self.ipv6 } else { &self.ipv4 }
    }
}
