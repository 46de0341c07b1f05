//! The configuration of a data plane, which `dataplane_file` parses from a file. Properties of the
//! machine, such as the existence of a port, are not part of it.

mod health;
mod types;

pub use crate::topology::Dataplane;
pub use health::Health;
pub use types::{
    Attachment, Behavior, Endpoint, File, Limits, Mode, Name, Policy, Port, Proxy, Steer, Table,
    Tags, Tenant, Weighted,
};

/// Name of a daemon's Unix socket in its state directory.
pub const SOCKET: &str = "dataplane.sock";
