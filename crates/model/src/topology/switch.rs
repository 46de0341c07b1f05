//! Switches with AF_XDP ports.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Tenant;

/// Open vSwitch with AF_XDP ports, which tenants' programs judge.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Switch {
    /// Tenants, in file order. Their ports are named after the nodes that they lead to.
    pub tenants: Vec<Tenant>,
}

impl Switch {
    /// Name of the switch's bridge, an interface in its namespace.
    pub const BRIDGE: &'static str = "br0";
    /// Largest MTU of its ports, in bytes: native XDP on veth needs a frame in one page.
    pub const LARGEST_MTU: u16 = 3500;
}
