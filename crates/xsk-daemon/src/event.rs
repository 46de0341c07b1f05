//! Events of the daemon: links, reports of clients, and requests.

use std::sync::mpsc::Sender;

use xsk_link::Report;

use crate::error::Error;
use crate::session::Session;
use crate::status::Status;
use crate::trace::Trace;

/// An event, with the number of its session.
pub(crate) enum Event {
    /// A process of the client has got a link.
    Linked(u64, Box<Session>),
    /// Processes of the client are refused, until one gets a link. The reason of the first one.
    Refused(String),
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
    Trace {
        trace: Trace,
        done: Sender<Result<(), Error>>,
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
