//! `kaido xsk`: AF_XDP clients with tenants' P4 programs on their ports.

use schemars::JsonSchema;
use serde::Serialize;

/// A running AF_XDP client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct XskClient {
    /// Name; `LAB/NODE` for the client of a lab, without `--lab`.
    pub name: String,
    /// Process that `kaido xsk run` has started.
    pub process: u32,
    /// Executable.
    pub executable: String,
    /// Tenants.
    pub tenants: Vec<String>,
}

/// A running AF_XDP client with its counters. `kaido xsk top` prints packets per second instead of
/// totals, except for packets in flight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct XskState {
    /// Name; `LAB/NODE` for the client of a lab, without `--lab`.
    pub name: String,
    /// Process that `kaido xsk run` has started.
    pub process: u32,
    /// Executable.
    pub executable: String,
    /// Address of P4Runtime, for the commands of `kaido p4`.
    pub p4runtime: String,
    /// Tenants with their programs, in the order of the tenants file.
    pub programs: Vec<XskProgram>,
    /// Directions of the client's open sockets.
    pub sockets: Vec<XskDirection>,
}

/// The program of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct XskProgram {
    /// Tenant.
    pub tenant: String,
    /// Device id in P4Runtime.
    pub device_id: u64,
    /// Interfaces.
    pub ports: Vec<XskPort>,
    /// Number of programs that have been installed; 1 is the file's program.
    pub version: u64,
    /// Process that runs the program; null if there is none.
    pub process: Option<u32>,
    /// True if the client's process runs the program.
    pub is_inline: bool,
    /// Parts of the isolation that the process has.
    pub isolation: Vec<String>,
    /// Parts of the usual isolation that it lacks.
    pub isolation_lacks: Vec<String>,
    /// Number of processes that crashed, were too slow or violated the protocol.
    pub failures: u64,
    /// The reason that the last process was ended; null if none was.
    pub last_failure: Option<String>,
    /// True if the program has failed too often and gets no further process.
    pub evicted: bool,
}

/// An interface of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct XskPort {
    /// Interface.
    pub interface: String,
    /// Port number of received packets. It is 256 larger for transmitted ones.
    pub number: u32,
}

/// One direction of an AF_XDP socket, with the packets since the socket was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct XskDirection {
    /// Process that has the socket.
    pub process: u32,
    /// Interface.
    pub interface: String,
    /// Queue of the interface.
    pub queue: u32,
    /// `receive` or `transmit`.
    pub direction: &'static str,
    /// Tenant; null without a program.
    pub tenant: Option<String>,
    /// Port number that the program sees.
    pub port: Option<u32>,
    /// Packets that were given to a program and have a fate.
    pub submitted: u64,
    /// Packets that the program passed.
    pub passed: u64,
    /// Packets that the program dropped.
    pub dropped: u64,
    /// Packets that the program sent to another port; they are dropped.
    pub redirected: u64,
    /// Packets without a verdict, for which the tenant's `default` decided.
    pub by_policy: u64,
    /// Packets that `default` dropped; they are also counted in `by_policy`.
    pub dropped_by_policy: u64,
    /// Dropped packets that do not fit into a frame or into a chunk of the client's memory.
    pub unfit: u64,
    /// Packets that wait for a verdict.
    pub in_flight: u64,
    /// Packets that passed without a program.
    pub without_program: u64,
    /// Descriptors with an address that their sender did not own.
    pub wrong_owner: u64,
}

/// A packet with the verdict on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct XskTraced {
    /// Process of the client.
    pub process: u32,
    /// Interface.
    pub interface: String,
    /// Queue of the interface.
    pub queue: u32,
    /// `receive` or `transmit`, as the client sees it.
    pub direction: &'static str,
    /// Tenant; null if its program was detached meanwhile.
    pub tenant: Option<String>,
    /// Port number that the program sees.
    pub port: Option<u32>,
    /// Length in bytes.
    pub length: u32,
    /// Headers, outermost first.
    pub headers: String,
    /// First bytes, in hexadecimal.
    pub head: String,
    /// `passed`, `dropped`, `redirected` or `unfit`. All but the first are dropped.
    pub verdict: String,
    /// Port to which the program sent the packet.
    pub redirected_to: Option<u32>,
    /// Reason that the tenant's `default` decided; empty if the program did.
    pub reason: String,
    /// Length after the program; 0 if it does not pass.
    pub passed_length: u32,
    /// Headers after the program; empty if it does not pass.
    pub passed_headers: String,
    /// First bytes after the program, in hexadecimal; empty if it does not pass.
    pub passed_head: String,
}

/// A program that has been attached to an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct XskAttached {
    /// Tenant.
    pub tenant: String,
    /// Interface.
    pub interface: String,
    /// Port number.
    pub port: u32,
    /// Number of open sockets of the interface. Sockets that are opened later get the program too.
    pub sockets: u32,
}

/// A program that has been detached from an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct XskDetached {
    /// Tenant.
    pub tenant: String,
    /// Interface.
    pub interface: String,
}

/// A valid tenants file with programs that compile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckedTenants {
    /// Tenants.
    pub tenants: Vec<CheckedTenant>,
}

/// A tenant of a valid tenants file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckedTenant {
    /// Tenant.
    pub tenant: String,
    /// Device id in P4Runtime.
    pub device_id: u64,
    /// Program or object.
    pub program: String,
    /// Interfaces.
    pub ports: Vec<XskPort>,
    /// Number of initial table entries.
    pub entries: usize,
}
