//! Reports of the client's processes.

use sandbox::process::{Accusation, Reason};
use xsk_link::{Error as LinkError, Order, Report, VERSION};

use crate::daemon::Daemon;
use crate::error::AttachError;
use crate::session::Socket;

/// Maximum length of an executable's name in bytes (NAME_MAX).
const MAX_PROGRAM_NAME: usize = 255;
/// Maximum number of sockets of all processes of a client: a message about them stays below 1 MiB.
const SOCKETS: usize = 2048;

impl Daemon {
    pub(crate) fn report(&mut self, number: u64, report: Report) -> Result<(), LinkError> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        match report {
            Report::Hello { version, process, program } => {
                return self.hello(number, version, process, program);
            }
            Report::Opened { socket, interface, queue, receives, transmits } => {
                return self.opened(
                    number,
                    socket,
                    Socket { interface, queue, receives, transmits },
                );
            }
            Report::Closed { socket } => self.close(number, socket),
            Report::Drained { attachment } => self.drained(number, attachment),
            Report::Accused { attachment, accusation } => {
                return self.accused(number, attachment, accusation);
            }
            Report::Counters(counters) => {
                session.counters = counters;
                session.answered += 1;
            }
            Report::Traced { socket, direction, packets } => {
                self.traced(number, socket, direction, packets);
            }
        }
        Ok(())
    }

    /// Handles the first message of a process: its id and its executable.
    fn hello(
        &mut self,
        number: u64,
        version: u32,
        process: u32,
        program: String,
    ) -> Result<(), LinkError> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        // It is printed, and a control character could forge a line.
        let is_name = program.len() <= MAX_PROGRAM_NAME && !program.contains(char::is_control);
        if !is_name || process == 0 || session.process != 0 {
            return Err(LinkError::Invalid);
        }
        if version != VERSION {
            (self.tell)(&format!(
                "{program} is refused: its library speaks version {version}, `kaido` version \
                 {VERSION}"
            ));
            return Err(LinkError::Invalid);
        }
        (session.process, session.name) = (process, program);
        Ok(())
    }

    /// Attaches the program of the tenant that owns the interface of a new socket.
    fn opened(&mut self, number: u64, socket: u32, opened: Socket) -> Result<(), LinkError> {
        let sockets: usize = self.sessions.values().map(|session| session.sockets.len()).sum();
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let name = opened.interface.clone();
        let is_name = model::is_interface_name(&name) && !name.contains(char::is_control);
        let is_known = session.sockets.contains_key(&socket);
        let is_full = session.sockets.len() >= xsk_link::MAX_SOCKETS || sockets >= SOCKETS;
        if !is_name || is_known || is_full {
            return Err(LinkError::Invalid);
        }
        session.sockets.insert(socket, opened);
        let program = self.programs.iter().position(|one| one.port(&name).is_some());
        let attached = match program.map(|program| self.attach(number, socket, program)) {
            Some(Err(AttachError::Link(why))) => return Err(why),
            Some(Err(AttachError::Refused(why))) => Err(why.to_string()),
            Some(Ok(())) => Ok(()),
            None => self.unjudged.open(&name, &self.tell),
        };
        if let Err(why) = attached {
            (self.tell)(&format!("{name}: its socket is refused: {why}"));
            self.close(number, socket);
            return self.send(number, &Order::Refused { socket, why });
        }
        self.send(number, &Order::Ready { socket })
    }

    /// Handles a client's accusation that the process of an attachment breaks the protocol.
    fn accused(
        &mut self,
        number: u64,
        attachment: u64,
        accusation: Accusation,
    ) -> Result<(), LinkError> {
        let Some(session) = self.sessions.get(&number) else { return Ok(()) };
        let mut all = session.attached.iter().chain(&session.draining);
        let Some(of) = all.find(|one| one.attachment == attachment) else { return Ok(()) };
        let its = &mut self.programs[of.program];
        if !of.is_detached && of.incarnation == Some(its.seen) {
            its.accuse(of.queue, accusation);
            return Ok(());
        }
        // Packets at a replaced process go to the next program, those at a detached one to the
        // policy.
        let flying = if of.is_detached { Reason::Deadline } else { Reason::Crashed };
        let later = Reason::Evicted;
        session.link.send(&Order::Ended { attachment, flying, later }, &[])
    }
}
