//! Attachments: programs at both directions of sockets.

use xsk_link::Direction;

use crate::daemon::Daemon;
use crate::error::{AttachError, Refusal};
use crate::program::Attached;
use crate::tenant::TRANSMITTED;

impl Daemon {
    /// Attaches a program to both directions of a socket. After an error, one may be attached.
    pub(crate) fn attach(
        &mut self,
        number: u64,
        socket: u32,
        program: usize,
    ) -> Result<(), AttachError> {
        self.look(program);
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let Some(of) = session.sockets.get(&socket).cloned() else { return Ok(()) };
        let its = &mut self.programs[program];
        let Some(port) = its.port(&of.interface) else { return Ok(()) };
        for direction in Direction::BOTH {
            let (exists, port) = match direction {
                Direction::Receive => (of.receives, port),
                Direction::Transmit => (of.transmits, port | TRANSMITTED),
            };
            if !exists {
                continue;
            }
            let tenant = || its.tenant.name.clone();
            if !its.has_run() {
                return Err(Refusal::NotRunning { tenant: tenant() }.into());
            }
            let queues = its.tenant.config.queues;
            let no_queue = Refusal::NoQueue { tenant: tenant(), queues };
            let queue = its.take_queue().ok_or(no_queue)?;
            let attachment = session.number();
            let mut to = Attached {
                socket,
                direction,
                attachment,
                program,
                port,
                queue,
                is_detached: false,
                incarnation: None,
            };
            let attached = its.attach(number, &session.link, &to);
            to.incarnation = attached.inspect_err(|_| its.free_queue(queue))?;
            session.attached.push(to);
        }
        Ok(())
    }

    /// Removes a socket and its attachments.
    pub(crate) fn close(&mut self, number: u64, socket: u32) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.sockets.remove(&socket);
        session.counters.retain(|one| one.socket != socket);
        let is_its = |one: &mut Attached| one.socket == socket;
        let detached = session.draining.extract_if(.., is_its).filter(|one| one.is_detached);
        for attached in detached.chain(session.attached.extract_if(.., is_its)) {
            self.programs[attached.program].free_queue(attached.queue);
        }
    }

    pub(crate) fn drained(&mut self, number: u64, attachment: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let mut all = session.draining.iter();
        let Some(at) = all.position(|one| one.attachment == attachment) else { return };
        let drained = session.draining.swap_remove(at);
        let program = drained.program;
        // A detached attachment has kept its queue until now.
        if drained.is_detached {
            self.programs[program].free_queue(drained.queue);
        }
        let mut all = self.sessions.values().flat_map(|session| &session.draining);
        if !all.any(|other| other.program == program) {
            self.programs[program].all_drained();
        }
    }
}
