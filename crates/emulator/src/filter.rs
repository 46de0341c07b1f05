//! Filters for packets that a link must not forward.

use std::ops::RangeInclusive;

use ipnet::IpNet;
use wire::Headers;

/// A filter. A packet matches if it matches all fields that are set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Source prefix.
    pub from: Option<IpNet>,
    /// Destination prefix.
    pub to: Option<IpNet>,
    /// IP protocol number.
    pub protocol: Option<u8>,
    /// Range of destination ports.
    pub ports: Option<RangeInclusive<u16>>,
}

impl Filter {
    /// Returns true if the frame matches. For tunnelled packets, the outermost addresses and the
    /// innermost protocol and ports are compared.
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
