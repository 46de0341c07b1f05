//! The files that every program may include.

/// Their names and texts.
const FILES: [(&str, &str); 2] = [
    ("core.p4", include_str!("../model/core.p4")),
    ("ubpf_model.p4", include_str!("../model/ubpf_model.p4")),
];

/// The text of a file of the language or the model.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| *file == name).map(|(_, text)| *text)
}
