//! The daemon's state as a [`Status`].

use std::collections::HashMap;

use xsk_link::{Direction, Tally};

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
        let counters: HashMap<_, _> = of.counters.iter().map(|one| (one.socket, *one)).collect();
        let of_socket = |one: &Attached| ((one.socket, one.direction), one.clone());
        let attached: HashMap<_, _> = of.attached.iter().map(of_socket).collect();
        let socket = |(number, socket): (&u32, &Socket)| {
            let counters = counters.get(number).copied().unwrap_or_default();
            let all = [
                (Direction::Receive, socket.receives, counters.receive),
                (Direction::Transmit, socket.transmits, counters.transmit),
            ];
            let directions = all.into_iter().filter(|(_, exists, _)| *exists);
            let directions = directions.map(|(direction, _, tally)| {
                AttachmentStatus::new(
                    direction,
                    attached.get(&(*number, direction)),
                    tally,
                    programs,
                )
            });
            let (interface, queue) = (socket.interface.clone(), socket.queue);
            SocketStatus { interface, queue, directions: directions.collect() }
        };
        let sockets = of.sockets.iter().map(socket).collect();
        Self { process: of.process, name: of.name.clone(), sockets }
    }
}

impl AttachmentStatus {
    fn new(
        direction: Direction,
        attached: Option<&Attached>,
        tally: Tally,
        programs: &[Program],
    ) -> Self {
        Self {
            direction,
            tenant: attached.map(|one| programs[one.program].tenant.name.clone()),
            port: attached.map(|one| one.port),
            tally,
        }
    }
}
