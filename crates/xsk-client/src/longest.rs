//! The longest frame that an interface sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ethernet header and two VLAN tags.
const HEADER: u32 = 14 + 2 * 4;

/// The longest frame that a program may make for an interface, in bytes with its Ethernet header: the
/// MTU, a header and two VLAN tags. A longer frame can stop a network card for all its users. Clones
/// share the value.
#[derive(Debug, Clone)]
pub struct LongestFrame(Arc<AtomicU32>);

impl Default for LongestFrame {
    /// Without a limit: the client knows its interfaces.
    fn default() -> Self {
        Self(Arc::new(AtomicU32::new(u32::MAX)))
    }
}

impl LongestFrame {
    /// Sets it to that of an MTU, with two VLAN tags.
    pub fn set_mtu(&self, mtu: u32) {
        self.0.store(mtu.saturating_add(HEADER), Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
