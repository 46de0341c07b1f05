//! Members of `ubpf_action`: the verdict on a packet.

/// Abort: the program failed on the packet.
pub const ABORT: usize = 0;
/// Drop the packet.
pub const DROP: usize = 1;
/// Pass the packet on.
pub const PASS: usize = 2;
/// Send the packet out of `output_port`.
pub const REDIRECT: usize = 3;
