//! State of the daemon, as it is shown.

use p4runtime::Health;
use xsk_link::{Direction, Tally};

use crate::program::{Attached, Program};
use crate::session::{Session, Socket};
use crate::tenant::Port;

/// State of all programs and clients.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// Programs, in the order of the tenants.
    pub programs: Vec<ProgramStatus>,
    /// Processes of the client.
    pub clients: Vec<ClientStatus>,
}

/// State of a tenant's program.
#[derive(Debug, Clone)]
pub struct ProgramStatus {
    /// Tenant.
    pub tenant: String,
    /// Device id in P4Runtime.
    pub device: u64,
    /// Interfaces.
    pub ports: Vec<Port>,
    /// Number of programs that control planes and the file have installed.
    pub version: u64,
    /// Health of its process.
    pub health: Health,
}

/// State of a process of the client.
#[derive(Debug, Clone)]
pub struct ClientStatus {
    /// Process id.
    pub process: u32,
    /// Name of the executable.
    pub name: String,
    /// Open sockets.
    pub sockets: Vec<SocketStatus>,
}

/// State of a socket.
#[derive(Debug, Clone)]
pub struct SocketStatus {
    /// Interface.
    pub interface: String,
    /// Queue of the interface.
    pub queue: u32,
    /// Directions that the socket has.
    pub directions: Vec<AttachmentStatus>,
}

/// State of one direction of a socket.
#[derive(Debug, Clone)]
pub struct AttachmentStatus {
    /// Direction.
    pub direction: Direction,
    /// Tenant whose program judges the packets, if there is one.
    pub tenant: Option<String>,
    /// Number of the port in the program.
    pub port: Option<u32>,
    /// Packets.
    pub tally: Tally,
}

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
