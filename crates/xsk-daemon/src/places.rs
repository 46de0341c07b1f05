//! Places for processes of the client.

use std::sync::Arc;

/// Maximum number of processes of the client that use AF_XDP. Each has a thread and a socket here,
/// also after its end until its socket is closed, which the client can delay.
pub(crate) const MAX_SESSIONS: usize = 64;

/// The places, of which each process takes one.
#[derive(Default)]
pub(crate) struct Places(Arc<()>);

/// A place that is taken until this is dropped.
pub(crate) struct Place(#[expect(dead_code, reason = "its count is read")] Arc<()>);

impl Places {
    /// Takes a place; `None` if all are taken. Call this on one thread only.
    pub(crate) fn take(&self) -> Option<Place> {
        let taken = Arc::strong_count(&self.0) - 1;
        (taken < MAX_SESSIONS).then(|| Place(Arc::clone(&self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_place_is_free_again() {
        let places = Places::default();
        let mut taken: Vec<_> = std::iter::from_fn(|| places.take()).collect();
        assert_eq!(taken.len(), MAX_SESSIONS);
        taken.pop();
        assert!(places.take().is_some());
        taken.extend(places.take());
        assert!(places.take().is_none());
    }
}
