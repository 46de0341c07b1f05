//! Failures of requests.

use crate::tenant::TRANSMITTED;

/// Failure of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text cannot be the name of an interface.
    #[error("`{0}` cannot name an interface: write a name as `ip link` shows it, up to 15 bytes")]
    BadInterface(String),
    /// The name is an alternative name of an interface: sockets have the other one.
    #[error("`{name}` is an alternative name of `{interface}`: write `{interface}`")]
    AlternativeName {
        /// Alternative name.
        name: String,
        /// Name of the interface.
        interface: String,
    },
    /// The number cannot be a port's.
    #[error("{0} cannot be a port's number: write a number below {most}", most = TRANSMITTED)]
    BadNumber(u32),
    /// No tenant has this name.
    #[error("no tenant `{name}` (known: {})", .known.join(", "))]
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
        /// Tenant.
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
    /// A trace is running.
    #[error("another command traces packets of this client: end it first")]
    Tracing,
    /// The program cannot be attached.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The daemon has ended, or does not respond.
    #[error("the daemon does not respond")]
    Away,
}

/// Reason that a program cannot be attached to a socket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// All queues are in use.
    #[error(
        "tenant `{tenant}` has {queues} queues in use, two for each socket: raise its `queues`"
    )]
    NoQueue {
        /// Tenant.
        tenant: String,
        /// Number of its queues.
        queues: u32,
    },
    /// No process runs the program.
    #[error("the program of tenant `{tenant}` is not running")]
    NotRunning {
        /// Tenant.
        tenant: String,
    },
}

/// Failure to attach a program to a socket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    /// The client cannot be reached.
    #[error(transparent)]
    Link(#[from] xsk_link::Error),
    /// The program cannot be attached.
    #[error(transparent)]
    Refused(#[from] Refusal),
}
