//! Configuration of tenants.

use std::time::Duration;

use sandbox::process::{Config, Kernel, VmFeed};

/// An interface of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Name of the interface, as the client opens it.
    pub interface: String,
    /// Number of the port in the program, below 256.
    pub number: u32,
}

/// Added to the port's number for packets that the client transmits.
pub(crate) const TRANSMITTED: u32 = 256;

/// A tenant with its program.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Name.
    pub name: String,
    /// Device id in P4Runtime.
    pub device: u64,
    /// Interfaces whose packets the program judges.
    pub ports: Vec<Port>,
    /// Sandbox configuration: policy, deadline, limits.
    pub config: Config,
    /// Time for which packets wait for another process if theirs has ended, before the policy
    /// decides about them.
    pub hold: Duration,
    /// True if the program runs in the client's process while that uses its ports.
    pub is_inline: bool,
    /// Kernel of the virtual machine that runs the program; `None` for a process.
    pub kernel: Option<Kernel>,
    /// Values published by the tenant's VM.
    pub vm: Option<VmFeed>,
}
