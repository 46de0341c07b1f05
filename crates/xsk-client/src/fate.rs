//! Fate of a packet.

/// Fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// This number of its descriptors pass, the first ones. Others have no bytes any more.
    Pass(usize),
    Drop,
    /// The process has crashed: the next one judges it. A packet that is the cause ends when the
    /// tenant is evicted.
    Again,
}
