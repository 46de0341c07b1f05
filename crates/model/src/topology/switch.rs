//! Constants of switches and other nodes with AF_XDP sockets.

/// Name of a switch's bridge, an interface in its namespace.
pub const BRIDGE: &str = "br0";
/// Largest MTU of an interface with an AF_XDP socket, in bytes, without the Ethernet header: native
/// XDP on veth needs a frame in one page.
pub const MAX_AF_XDP_MTU: u16 = 3498;
