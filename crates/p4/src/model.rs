//! The architecture model (`crates/p4-syntax/model`): its metadata and its extern objects.

use crate::ir::{ExternId, PlacedObject, Program, Type, Value};

/// Indices of the fields of `standard_metadata`.
pub mod field {
    /// Names of the fields.
    pub const NAMES: [&str; 6] =
        ["input_port", "packet_length", "output_action", "output_port", "clone", "clone_port"];
    /// Ingress port.
    pub const INPUT_PORT: usize = 0;
    /// Packet length in bytes.
    pub const PACKET_LENGTH: usize = 1;
    /// Verdict on the packet.
    pub const OUTPUT_ACTION: usize = 2;
    /// Egress port.
    pub const OUTPUT_PORT: usize = 3;
    /// True if a clone is sent.
    pub const CLONE: usize = 4;
    /// Egress port of the clone.
    pub const CLONE_PORT: usize = 5;
}

/// Extern objects of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// An array of values.
    Register,
    /// An array of counters.
    Counter,
    /// A counter for each table entry.
    DirectCounter,
    /// An array of meters.
    Meter,
    /// A meter for each table entry.
    DirectMeter,
    /// A message to the control plane.
    Digest,
}

impl Object {
    /// Returns the object that an extern of this name declares.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "Register" => Self::Register,
            "Counter" => Self::Counter,
            "DirectCounter" => Self::DirectCounter,
            "Meter" => Self::Meter,
            "DirectMeter" => Self::DirectMeter,
            "Digest" => Self::Digest,
            _ => return None,
        })
    }

    /// Returns true for objects that are attached to a table.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::DirectCounter | Self::DirectMeter)
    }
}

/// Unit of a counter or of a meter's rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Packets and bytes; only for counters.
    Both,
}

impl Program {
    /// Returns the model's object that an extern declares; None if the extern is not the model's.
    pub fn model_object(&self, of: ExternId) -> Option<Object> {
        self.externs[of.index()].object
    }

    /// Returns the unit of a counter or a meter, from the last argument of its constructor.
    pub fn unit(&self, object: &PlacedObject) -> Unit {
        match object.arguments.last().and_then(|one| one.constant()) {
            Some(Value::Member(1)) => Unit::Bytes,
            Some(Value::Member(2)) => Unit::Both,
            _ => Unit::Packets,
        }
    }

    /// Returns the mask of a counter's width of up to 64 bits.
    pub fn count_mask(&self, object: &PlacedObject) -> u64 {
        match object.types.first().map(|of| self.representation(of)) {
            Some(Type::Bits { width, .. }) if width < 64 => (1 << width) - 1,
            _ => u64::MAX,
        }
    }

    /// Returns true if the type is the model's metadata.
    pub fn is_metadata(&self, of: &Type) -> bool {
        matches!(of, Type::Record(id)
            if &*self.records[id.index()].declared.name == "standard_metadata")
    }
}
