//! The daemon's state as a [`Status`].

use xsk_link::Direction;

use crate::program::{Attached, Program};
use crate::session::{Session, Socket};
use crate::status::{AttachmentStatus, ClientStatus, ProgramStatus, SocketStatus, Status};

impl Status {
    pub(crate) fn new<'a>(
        programs: &[Program],
        sessions: impl Iterator<Item = &'a Session>,
    ) -> Self {
        let clients = sessions.map(|session| ClientStatus::new(session, programs)).collect();
        Self { programs: programs.iter().map(ProgramStatus::new).collect(), clients }
    }
}

impl ProgramStatus {
    fn new(of: &Program) -> Self {
        Self {
            tenant: of.tenant.name.clone(),
            device: of.tenant.device,
            ports: of.tenant.ports.clone(),
            version: of.seen.0,
            health: of.health.clone(),
        }
    }
}

impl ClientStatus {
    fn new(of: &Session, programs: &[Program]) -> Self {
        let socket =
            |(number, socket): (&u32, &Socket)| SocketStatus::new(of, *number, socket, programs);
        let sockets = of.sockets.iter().map(socket).collect();
        Self { process: of.process, name: of.name.clone(), sockets }
    }
}

impl SocketStatus {
    fn new(session: &Session, number: u32, of: &Socket, programs: &[Program]) -> Self {
        let counters = session.counters.iter().find(|one| one.socket == number);
        let counters = counters.copied().unwrap_or_default();
        let all = [
            (Direction::Receive, of.receives, counters.receive),
            (Direction::Transmit, of.transmits, counters.transmit),
        ];
        let directions = all.into_iter().filter(|(_, exists, _)| *exists);
        let directions = directions.map(|(direction, _, tally)| {
            let is_it = |one: &&Attached| one.socket == number && one.direction == direction;
            let attached = session.attached.iter().find(is_it);
            AttachmentStatus {
                direction,
                tenant: attached.map(|one| programs[one.program].tenant.name.clone()),
                port: attached.map(|one| one.port),
                tally,
            }
        });
        let (interface, queue) = (of.interface.clone(), of.queue);
        Self { interface, queue, directions: directions.collect() }
    }
}
