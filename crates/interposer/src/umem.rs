//! UMEMs of the client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use xsk::{Ring, RingMemory};
use xsk_client::Memory;

/// The rings of a UMEM, until it is deleted.
pub(crate) struct Umem {
    /// Rings of the kernel. libxdp keeps their addresses.
    pub(crate) fill: Box<Ring>,
    pub(crate) completion: Box<Ring>,
    /// Rings of the client.
    pub(crate) client_fill: Arc<RingMemory>,
    pub(crate) client_completion: Arc<RingMemory>,
    pub(crate) memory: Memory,
    /// libxdp's `struct xsk_socket` that uses the rings: there may be one end of each.
    pub(crate) socket: Option<usize>,
}

// SAFETY: the rings' pointers are only used by their ends, each by one thread at a time.
unsafe impl Send for Umem {}

/// All UMEMs, by the address of libxdp's `struct xsk_umem`.
pub(crate) static UMEMS: Mutex<Option<HashMap<usize, Umem>>> = Mutex::new(None);

/// Runs a function on the UMEMs.
pub(crate) fn with_umems<R>(function: impl FnOnce(&mut HashMap<usize, Umem>) -> R) -> R {
    let mut umems = UMEMS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    function(umems.get_or_insert_default())
}
