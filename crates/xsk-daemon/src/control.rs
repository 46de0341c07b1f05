//! Requests to the daemon.

use std::sync::mpsc::{Sender, SyncSender, channel};
use std::time::Duration;

use crate::daemon::Event;
use crate::status::Status;
use crate::tenant::Port;

/// Timeout of a request.
const PATIENCE: Duration = Duration::from_secs(5);

/// Failure of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No tenant has this name.
    #[error("there is no tenant `{0}`")]
    NoTenant(String),
    /// The interface belongs to a tenant.
    #[error("`{interface}` belongs to tenant `{tenant}`: detach it first")]
    Taken {
        /// Interface.
        interface: String,
        /// Its tenant.
        tenant: String,
    },
    /// The interface belongs to no tenant.
    #[error("no program is attached to `{0}`")]
    NotAttached(String),
    /// The program cannot be attached.
    #[error("{0}")]
    Refused(String),
    /// The daemon has ended, or does not answer.
    #[error("the daemon does not answer")]
    Away,
}

pub(crate) enum Request {
    Status(Sender<Status>),
    Attach { tenant: String, port: Port, done: Sender<Result<(), Error>> },
    Detach { interface: String, done: Sender<Result<(), Error>> },
    End,
}

/// Sends requests to a running daemon. Clones are of the same daemon.
#[derive(Debug, Clone)]
pub struct Control(pub(crate) SyncSender<Event>);

impl Control {
    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T, Error> {
        let (done, answer) = channel();
        self.0.send(Event::Request(request(done))).map_err(|_| Error::Away)?;
        answer.recv_timeout(PATIENCE).map_err(|_| Error::Away)
    }

    /// State of all programs and clients. Counters are up to a second old.
    ///
    /// # Errors
    ///
    /// Fails if the daemon has ended.
    pub fn status(&self) -> Result<Status, Error> {
        self.ask(Request::Status)
    }

    /// Attaches the program of a tenant to an interface, in both directions of all its sockets, now
    /// and later.
    ///
    /// # Errors
    ///
    /// Fails if the tenant does not exist, or if the interface belongs to a tenant.
    pub fn attach(&self, tenant: &str, port: Port) -> Result<(), Error> {
        let tenant = tenant.to_owned();
        self.ask(|done| Request::Attach { tenant, port, done })?
    }

    /// Detaches the program from an interface: its packets pass without a program.
    ///
    /// # Errors
    ///
    /// Fails if the interface belongs to no tenant.
    pub fn detach(&self, interface: &str) -> Result<(), Error> {
        let interface = interface.to_owned();
        self.ask(|done| Request::Detach { interface, done })?
    }

    /// Ends the daemon.
    pub fn end(&self) {
        // It may have ended.
        let _ = self.0.send(Event::Request(Request::End));
    }
}
