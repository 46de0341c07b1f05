//! Attaching programs to interfaces with open sockets, and detaching them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use xsk_link::{Direction, Order};

use crate::daemon::Daemon;
use crate::error::{AttachError, Error};
use crate::event::AttachedPort;
use crate::pending::Pending;
use crate::program::Attached;
use crate::tenant::Port;

/// Timeout of clients that carry out an order. A stopped one moves no packets either.
const TIMEOUT: Duration = Duration::from_secs(1);

impl Daemon {
    pub(crate) fn attach_port(
        &mut self,
        tenant: &str,
        interface: &str,
        number: Option<u32>,
    ) -> Result<AttachedPort, Error> {
        let Some(program) = self.programs.iter().position(|one| one.tenant.name == tenant) else {
            let known = self.programs.iter().map(|one| one.tenant.name.clone()).collect();
            return Err(Error::NoTenant { name: tenant.to_owned(), known });
        };
        if let Some(owner) = self.programs.iter().find(|one| one.port(interface).is_some()) {
            let (interface, tenant) = (interface.to_owned(), owner.tenant.name.clone());
            return Err(Error::Taken { interface, tenant });
        }
        let its = &mut self.programs[program].tenant;
        let number = its.number(number)?;
        its.ports.push(Port { interface: interface.to_owned(), number });
        let sockets = self.sockets_of(interface);
        let count = sockets.len();
        for (number, socket) in sockets {
            match self.attach(number, socket, program) {
                Ok(()) => {}
                Err(AttachError::Refused(why)) => {
                    // Half-attached sockets would let one direction pass.
                    let _ = self.detach_port(interface);
                    return Err(why.into());
                }
                Err(AttachError::Link(why)) => self.remove(number, &why),
            }
        }
        Ok(AttachedPort { number, sockets: count })
    }

    pub(crate) fn detach_port(&mut self, interface: &str) -> Result<String, Error> {
        let found = self.programs.iter().position(|one| one.port(interface).is_some());
        let program = found.ok_or_else(|| Error::NotAttached(interface.to_owned()))?;
        self.programs[program].tenant.ports.retain(|port| port.interface != interface);
        for (number, socket) in self.sockets_of(interface) {
            for direction in Direction::BOTH {
                if let Err(why) = self.send(number, &Order::Detach { socket, direction }) {
                    self.remove(number, &why);
                }
            }
            let Some(session) = self.sessions.get_mut(&number) else { continue };
            let detached = session.attached.extract_if(.., |one| one.socket == socket);
            let detached = detached.map(|one| Attached { is_detached: true, ..one });
            session.draining.extend(detached);
        }
        Ok(self.programs[program].tenant.name.clone())
    }

    /// Answers a request after the clients have carried out all orders about an interface.
    pub(crate) fn answer_later(&mut self, interface: &str, answer: impl FnOnce() + Send + 'static) {
        let clients: BTreeSet<u64> =
            self.sockets_of(interface).into_iter().map(|(number, _)| number).collect();
        let mut awaited = Vec::new();
        for number in clients {
            let Some(session) = self.sessions.get_mut(&number) else { continue };
            match session.count() {
                Ok(request) => awaited.push((number, request)),
                Err(why) => self.remove(number, &why),
            }
        }
        let (until, answer) = (Instant::now() + TIMEOUT, Box::new(answer));
        self.pending.push(Pending { awaited, until, answer });
    }

    /// Answers requests whose orders have been carried out, or time out.
    pub(crate) fn answer_pending(&mut self) {
        let sessions = &self.sessions;
        let is_done = |one: &mut Pending| one.is_done(sessions);
        self.pending.extract_if(.., is_done).for_each(|one| (one.answer)());
    }

    /// Sessions and numbers of the sockets of an interface.
    fn sockets_of(&self, interface: &str) -> Vec<(u64, u32)> {
        let mut found = Vec::new();
        for (number, session) in &self.sessions {
            let its = session.sockets.iter().filter(|(_, one)| one.interface == interface);
            found.extend(its.map(|(socket, _)| (*number, *socket)));
        }
        found
    }
}
