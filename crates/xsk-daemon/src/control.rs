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
    /// The text cannot be the name of an interface.
    #[error("`{0}` cannot name an interface: write a name as `ip link` shows it, up to 15 bytes")]
    BadInterface(String),
    /// The number cannot be a port's.
    #[error("{0} cannot be a port's number: write a number below {most}", most = Port::TRANSMITTED)]
    BadNumber(u32),
    /// No tenant has this name.
    #[error("there is no tenant `{name}`: {known}", known = listed(.known))]
    NoTenant {
        /// Name.
        name: String,
        /// Names of the tenants.
        known: Vec<String>,
    },
    /// The interface belongs to a tenant.
    #[error("`{interface}` belongs to tenant `{tenant}`: detach it first")]
    Taken {
        /// Interface.
        interface: String,
        /// Its tenant.
        tenant: String,
    },
    /// Another interface of the tenant has the number.
    #[error("`{interface}` is port {number} of tenant `{tenant}`: choose another number")]
    NumberTaken {
        /// Number.
        number: u32,
        /// Interface.
        interface: String,
        /// Tenant.
        tenant: String,
    },
    /// The tenant has the maximum number of ports.
    #[error("tenant `{0}` has no free port number")]
    Full(String),
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

fn listed(names: &[String]) -> String {
    format!("the tenants are {}", names.join(", "))
}

/// A program that has been attached to an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachedPort {
    /// Number of the port.
    pub number: u32,
    /// Number of open sockets of the interface.
    pub sockets: usize,
}

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
    /// and later. Without a number, the port gets the lowest one that the tenant does not use.
    ///
    /// # Errors
    ///
    /// Fails if the tenant does not exist, or if the interface or the number is taken.
    pub fn attach(
        &self,
        tenant: &str,
        interface: &str,
        number: Option<u32>,
    ) -> Result<AttachedPort, Error> {
        if !tenants_file::is_interface_name(interface) {
            return Err(Error::BadInterface(interface.to_owned()));
        }
        if let Some(number) = number.filter(|number| *number >= Port::TRANSMITTED) {
            return Err(Error::BadNumber(number));
        }
        let (tenant, interface) = (tenant.to_owned(), interface.to_owned());
        self.ask(|done| Request::Attach { tenant, interface, number, done })?
    }

    /// Detaches the program from an interface: its packets pass without a program. Returns the
    /// tenant.
    ///
    /// # Errors
    ///
    /// Fails if the interface belongs to no tenant.
    pub fn detach(&self, interface: &str) -> Result<String, Error> {
        let interface = interface.to_owned();
        self.ask(|done| Request::Detach { interface, done })?
    }

    /// Ends the daemon.
    pub fn end(&self) {
        // It may have ended.
        let _ = self.0.send(Event::Request(Request::End));
    }
}
