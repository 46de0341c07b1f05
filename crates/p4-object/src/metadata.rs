//! Metadata of a packet (`struct standard_metadata` of `crates/p4-syntax/model/ubpf_model.p4`): offsets
//! of its fields in bytes.

/// Ingress port.
pub const INPUT_PORT: i16 = 0;
/// Packet length in bytes.
pub const PACKET_LENGTH: i16 = 4;
/// Action to take on the packet: `ubpf_action`.
pub const OUTPUT_ACTION: i16 = 8;
/// Egress port.
pub const OUTPUT_PORT: i16 = 12;
/// True if a clone is sent; one byte.
pub const CLONE: i16 = 16;
/// Egress port of the clone.
pub const CLONE_PORT: i16 = 20;
/// Total size.
pub const SIZE: usize = 24;
