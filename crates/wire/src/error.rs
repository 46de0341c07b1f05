//! Errors of parsing and emitting headers.

/// Bytes that are not a valid header, or a value that does not fit into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes end inside the header.
    #[error("{header}: truncated, {have} of at least {need} bytes")]
    Truncated {
        /// The header.
        header: &'static str,
        /// The bytes it requires.
        need: usize,
        /// The bytes present.
        have: usize,
    },
    /// The version field is not that of the header's protocol.
    #[error("{header}: unsupported version {version}")]
    Version {
        /// The header.
        header: &'static str,
        /// The version field.
        version: u8,
    },
    /// A length that contradicts the header.
    #[error("{header}: invalid length {length}")]
    Length {
        /// The header.
        header: &'static str,
        /// The length.
        length: usize,
    },
    /// The routing type is not that of an SRH.
    #[error("SRH: routing type {0}, not 4")]
    RoutingType(u8),
    /// Segments Left exceeds the length of the list.
    #[error("SRH: Segments Left is {left}, and the list has {segments} segments")]
    SegmentsLeft {
        /// The Segments Left field.
        left: u8,
        /// The length of the list.
        segments: usize,
    },
    /// The frame carries neither IPv4 nor IPv6.
    #[error("EtherType {0:#06x} is not IP")]
    NotIp(u16),
    /// More nested headers than any valid packet has.
    #[error("too many nested headers")]
    TooDeep,
}
