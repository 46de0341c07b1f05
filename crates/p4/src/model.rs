//! The model: the files that every program may include, and what its metadata is.

use crate::ir::{Program, Type};

/// Their names and texts.
const FILES: [(&str, &str); 3] = [
    ("core.p4", include_str!("../model/core.p4")),
    ("ubpf_model.p4", include_str!("../model/ubpf_model.p4")),
    ("vm.p4", include_str!("../model/vm.p4")),
];

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

impl Program {
    /// Whether the type is the model's metadata.
    pub(crate) fn is_metadata(&self, of: &Type) -> bool {
        matches!(of, Type::Record(id)
            if &*self.records[id.index()].declared.name == "standard_metadata")
    }
}
