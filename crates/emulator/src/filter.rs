//! Packets that do not pass a link.

use std::ops::RangeInclusive;

use ipnet::IpNet;
use wire::Headers;

/// Those of which all that is given is true.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// From here.
    pub from: Option<IpNet>,
    /// To here.
    pub to: Option<IpNet>,
    /// Of this protocol, by its number.
    pub protocol: Option<u8>,
    /// To one of these ports.
    pub ports: Option<RangeInclusive<u16>>,
}

impl Filter {
    /// Whether a frame is one of them. Of a tunnel's packet the outermost addresses count, and the
    /// innermost protocol and ports.
    pub fn matches(&self, frame: &[u8]) -> bool {
        let Ok(headers) = Headers::dissect(frame) else { return false };
        let Some(outer) = headers.layers.first() else { return false };
        let is_within = |net: Option<IpNet>, address| net.is_none_or(|net| net.contains(&address));
        is_within(self.from, outer.src)
            && is_within(self.to, outer.dst)
            && self.protocol.is_none_or(|protocol| protocol == headers.protocol)
            && self
                .ports
                .as_ref()
                .is_none_or(|range| headers.ports.is_some_and(|ports| range.contains(&ports.dst)))
    }
}
