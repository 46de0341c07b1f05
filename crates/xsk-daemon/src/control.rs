//! Requests to the daemon.

use std::sync::mpsc::{Sender, SyncSender, channel};
use std::time::Duration;

use crate::error::Error;
use crate::event::{AttachedPort, Event, Request};
use crate::status::Status;
use crate::tenant::TRANSMITTED;
use crate::trace::{Trace, TracedPacket};

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Rejects an alternative name of an interface. Other failures are ignored: the client may create the
/// interface later.
fn check_name(interface: &str) -> Result<(), Error> {
    match netlink::Handle::new().and_then(|mut handle| handle.link(interface)) {
        Err(netlink::Error::AlternativeName { name, interface }) => {
            Err(Error::AlternativeName { name, interface })
        }
        _ => Ok(()),
    }
}

/// Sends requests to a running daemon. Clones are of the same daemon.
#[derive(Debug, Clone)]
pub struct Control(pub(crate) SyncSender<Event>);

impl Control {
    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T, Error> {
        let (done, answer) = channel();
        self.0.send(Event::Request(request(done))).map_err(|_| Error::Away)?;
        answer.recv_timeout(TIMEOUT).map_err(|_| Error::Away)
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
    /// Fails if the tenant does not exist, or if the interface or the number is taken, or if
    /// the name is an alternative one.
    pub fn attach(
        &self,
        tenant: &str,
        interface: &str,
        number: Option<u32>,
    ) -> Result<AttachedPort, Error> {
        if !model::is_interface_name(interface) {
            return Err(Error::BadInterface(interface.to_owned()));
        }
        if let Some(number) = number.filter(|number| *number >= TRANSMITTED) {
            return Err(Error::BadNumber(number));
        }
        check_name(interface)?;
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

    /// Traces packets of an interface, or of all, into `sink`, until there were `most`, or until the
    /// receiver is dropped.
    ///
    /// # Errors
    ///
    /// Fails if the interface belongs to no tenant, or if another trace is running.
    pub fn trace(
        &self,
        interface: Option<String>,
        most: u32,
        sink: tokio::sync::mpsc::Sender<TracedPacket>,
    ) -> Result<(), Error> {
        let trace = Trace { interface, left: most, sink };
        self.ask(|done| Request::Trace { trace, done })?
    }

    /// Ends the daemon.
    pub fn end(&self) {
        // It may have ended.
        let _ = self.0.send(Event::Request(Request::End));
    }
}
