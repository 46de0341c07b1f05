//! Files of the core library and of the architecture model.

/// Names and contents of the files.
const FILES: [(&str, &str); 4] = [
    ("core.p4", include_str!("../model/core.p4")),
    ("kaido.p4", include_str!("../model/kaido.p4")),
    ("ubpf_model.p4", include_str!("../model/ubpf_model.p4")),
    ("vm.p4", include_str!("../model/vm.p4")),
];

/// Returns the names of the files.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// Returns the contents of a file.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| *file == name).map(|(_, text)| *text)
}
