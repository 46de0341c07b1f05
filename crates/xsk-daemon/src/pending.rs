//! Requests that are answered after clients have carried out orders.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::session::Session;

/// A request without an answer.
pub(crate) struct Pending {
    /// Sessions, with the number of a request for counters: a client answers it after it has carried
    /// out all earlier orders.
    pub(crate) awaited: Vec<(u64, u64)>,
    /// Time of the answer even if a client does not respond.
    pub(crate) until: Instant,
    /// Sends the answer.
    pub(crate) answer: Box<dyn FnOnce() + Send>,
}

impl Pending {
    /// True if all clients have carried out their orders, or have ended, or time out.
    pub(crate) fn is_done(&self, sessions: &BTreeMap<u64, Session>) -> bool {
        let has_done = |(number, request): &(u64, u64)| {
            sessions.get(number).is_none_or(|session| session.answered >= *request)
        };
        self.awaited.iter().all(has_done) || Instant::now() >= self.until
    }
}
