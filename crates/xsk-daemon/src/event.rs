//! Events of the daemon: links, reports of clients, and requests.

use std::sync::mpsc::Sender;

use xsk_link::{ClientLink, Report};

use crate::error::Error;
use crate::places::Place;
use crate::status::Status;

/// An event, with the number of its session.
pub(crate) enum Event {
    /// A process of the client has got a link.
    Linked(ClientLink, Place),
    /// A process of the client is refused.
    NoPlace,
    Report(u64, Report),
    /// A process of the client has ended.
    Gone(u64),
    Request(Request),
}

/// A request to the daemon, with the sender of its answer.
pub(crate) enum Request {
    Status(Sender<Status>),
    Attach {
        tenant: String,
        interface: String,
        number: Option<u32>,
        done: Sender<Result<AttachedPort, Error>>,
    },
    Detach {
        interface: String,
        done: Sender<Result<String, Error>>,
    },
    End,
}

/// A program that has been attached to an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachedPort {
    /// Number of the port.
    pub number: u32,
    /// Number of open sockets of the interface.
    pub sockets: usize,
}
