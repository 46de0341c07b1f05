//! The model: the files that every program may include, and what its metadata is.

use crate::ir::{ExternId, PlacedObject, Program, Type, Value};

/// Their names and texts.
const FILES: [(&str, &str); 4] = [
    ("core.p4", include_str!("../model/core.p4")),
    ("kaido.p4", include_str!("../model/kaido.p4")),
    ("ubpf_model.p4", include_str!("../model/ubpf_model.p4")),
    ("vm.p4", include_str!("../model/vm.p4")),
];

/// The names of the files of the language and the model.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The text of a file of the language or the model.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| *file == name).map(|(_, text)| *text)
}

/// The members of `ubpf_action`: what becomes of a packet.
pub mod action {
    /// The program could not go on.
    pub const ABORT: usize = 0;
    /// It goes nowhere.
    pub const DROP: usize = 1;
    /// It goes on.
    pub const PASS: usize = 2;
    /// It leaves by `output_port`.
    pub const REDIRECT: usize = 3;
}

/// The places of the fields of `standard_metadata`.
pub(crate) mod field {
    pub(crate) const NAMES: [&str; 6] =
        ["input_port", "packet_length", "output_action", "output_port", "clone", "clone_port"];
    pub(crate) const INPUT_PORT: usize = 0;
    pub(crate) const PACKET_LENGTH: usize = 1;
    pub(crate) const OUTPUT_ACTION: usize = 2;
    pub(crate) const OUTPUT_PORT: usize = 3;
    pub(crate) const CLONE: usize = 4;
    pub(crate) const CLONE_PORT: usize = 5;
}

/// The extern objects that the model has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// Values by index.
    Register,
    /// Counts by index.
    Counter,
    /// Counts of a table's entries.
    DirectCounter,
    /// Meters by index.
    Meter,
    /// Meters of a table's entries.
    DirectMeter,
    /// Values for the control plane.
    Digest,
}

impl Object {
    /// Whether it belongs to a table.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::DirectCounter | Self::DirectMeter)
    }
}

/// What is counted, or what rates are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Packets.
    Packets,
    /// Their bytes.
    Bytes,
    /// Both, by a counter.
    Both,
}

impl Program {
    /// Which of the model's objects an extern is; None if it is somebody else's.
    pub fn model_object(&self, of: ExternId) -> Option<Object> {
        Some(match &*self.externs[of.index()].declared.name {
            "Register" => Object::Register,
            "Counter" => Object::Counter,
            "DirectCounter" => Object::DirectCounter,
            "Meter" => Object::Meter,
            "DirectMeter" => Object::DirectMeter,
            "Digest" => Object::Digest,
            _ => return None,
        })
    }

    /// What a counter counts, or a meter's rates are in: the last argument of its constructor.
    pub fn unit(&self, object: &PlacedObject) -> Unit {
        match object.arguments.last().and_then(|one| one.constant()) {
            Some(Value::Member(1)) => Unit::Bytes,
            Some(Value::Member(2)) => Unit::Both,
            _ => Unit::Packets,
        }
    }

    /// The ones of the width that a counter's numbers have: up to 64.
    pub(crate) fn count_mask(&self, object: &PlacedObject) -> u64 {
        match object.types.first().map(|of| self.representation(of)) {
            Some(Type::Bits { width, .. }) if width < 64 => (1 << width) - 1,
            _ => u64::MAX,
        }
    }

    /// Whether the type is the model's metadata.
    pub(crate) fn is_metadata(&self, of: &Type) -> bool {
        matches!(of, Type::Record(id)
            if &*self.records[id.index()].declared.name == "standard_metadata")
    }
}
