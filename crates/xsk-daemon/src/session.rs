//! A process of the client.

use std::collections::BTreeMap;
use std::sync::Arc;

use xsk_link::{ClientLink, Order, SocketCounters};

use crate::host::ClientHost;
use crate::program::Attached;

/// A socket of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Socket {
    pub(crate) interface: String,
    pub(crate) queue: u32,
    pub(crate) receives: bool,
    pub(crate) transmits: bool,
}

/// A process of the client, with its sockets.
pub(crate) struct Session {
    pub(crate) link: Arc<ClientLink>,
    /// Process id; 0 before the client's first message.
    pub(crate) process: u32,
    /// Name of the executable.
    pub(crate) name: String,
    pub(crate) sockets: BTreeMap<u32, Socket>,
    pub(crate) attached: Vec<Attached>,
    /// Replaced and detached attachments whose packets may be in flight.
    pub(crate) draining: Vec<Attached>,
    next_attachment: u64,
    /// Last counters.
    pub(crate) counters: Vec<SocketCounters>,
    /// Number of requests for counters.
    pub(crate) asked: u64,
    /// Number of answers to them.
    pub(crate) answered: u64,
}

impl Session {
    pub(crate) fn new(link: Arc<ClientLink>) -> Self {
        Self {
            link,
            process: 0,
            name: String::new(),
            sockets: BTreeMap::new(),
            attached: Vec::new(),
            draining: Vec::new(),
            next_attachment: 1,
            counters: Vec::new(),
            asked: 0,
            answered: 0,
        }
    }

    /// Returns this process as a host of a program. `number` is that of the session.
    pub(crate) fn host(&mut self, number: u64) -> ClientHost {
        let (link, process) = (Arc::clone(&self.link), self.process);
        ClientHost { session: number, link, process, program: self.number() }
    }

    /// Asks for counters. Returns the number of the request.
    pub(crate) fn count(&mut self) -> Result<u64, xsk_link::Error> {
        self.asked += 1;
        self.link.send(&Order::Count, &[])?;
        Ok(self.asked)
    }

    /// Returns the number of a new attachment or of a hosted program.
    pub(crate) fn number(&mut self) -> u64 {
        self.next_attachment += 1;
        self.next_attachment - 1
    }
}
