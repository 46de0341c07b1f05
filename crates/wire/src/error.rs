//! Why bytes are no header.

/// Why bytes are no header, or a value cannot be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes end inside the header.
    #[error("{header}: {have} bytes of at least {need}")]
    Truncated {
        /// The header.
        header: &'static str,
        /// How many bytes it takes.
        need: usize,
        /// How many there are.
        have: usize,
    },
    /// The version field is another protocol's.
    #[error("{header}: version {version}")]
    Version {
        /// The header.
        header: &'static str,
        /// What the field says.
        version: u8,
    },
    /// A length that contradicts the header.
    #[error("{header}: a length of {length} is not possible")]
    Length {
        /// The header.
        header: &'static str,
        /// The length.
        length: usize,
    },
    /// A routing header of another type than segment routing's.
    #[error("SRH: routing type {0}, not 4")]
    RoutingType(u8),
    /// More segments left than the list has.
    #[error("SRH: {left} segments left of {segments}")]
    SegmentsLeft {
        /// What the field says.
        left: u8,
        /// The list's length.
        segments: usize,
    },
    /// The frame carries neither IPv4 nor IPv6.
    #[error("EtherType {0:#06x} is not IP")]
    NotIp(u16),
    /// More headers inside each other than any packet of ours has.
    #[error("too many nested headers")]
    TooDeep,
}
