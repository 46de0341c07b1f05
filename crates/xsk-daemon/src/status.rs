//! State of the daemon, as it is shown.

use p4runtime::Health;
use xsk_link::{Direction, Tally};

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
