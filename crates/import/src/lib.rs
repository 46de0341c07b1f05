//! Importers of other tools' labs.
//!
//! Every importer parses a text into a `Draft`; `names` assigns names that are valid in Kaido, and
//! `write` produces a topology file. Anything that the file cannot represent results in a note.
#![forbid(unsafe_code)]

mod containerlab;
mod draft;
mod kathara;
mod miniedit;
mod names;
mod write;

use document::Problems;
use serde::Serialize;

/// Format of a lab file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// containerlab's YAML.
    Containerlab,
    /// Kathará's `lab.conf`.
    Kathara,
    /// MiniEdit's JSON.
    Miniedit,
}

/// A file that accompanies the lab file.
#[derive(Debug, Clone)]
pub struct Beside {
    /// File name.
    pub name: String,
    /// Content.
    pub text: String,
}

/// A difference between the original lab and the topology file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Line in the original file, from 1; none if the note is not about a single line.
    pub line: Option<usize>,
    /// Description.
    pub text: String,
}

/// An imported topology file, with notes on the differences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Lab name.
    pub lab: String,
    /// Text of the topology file. The notes are comments at its top.
    pub topology: String,
    /// Omissions and assumptions.
    pub notes: Vec<Note>,
}

impl Format {
    /// Default name for a lab without a name: derived from its file, or from the directory of a
    /// lab.conf.
    pub fn lab_of(file: &str) -> String {
        let mut parts = file.rsplit('/').filter(|part| !part.is_empty());
        let last = parts.next().unwrap_or_default();
        let of = if last == "lab.conf" { parts.next().unwrap_or_default() } else { last };
        names::lab_name(of.split('.').next().unwrap_or_default())
    }

    /// Detects the format by the file name or, if that is not sufficient, by the content.
    pub fn recognise(file: &str, text: &str) -> Option<Self> {
        let name = file.rsplit('/').next().unwrap_or(file);
        if name == "lab.conf" {
            return Some(Self::Kathara);
        }
        if name.ends_with(".mn") {
            return Some(Self::Miniedit);
        }
        if [".clab.yml", ".clab.yaml"].iter().any(|end| name.ends_with(end)) {
            return Some(Self::Containerlab);
        }
        if text.trim_start().starts_with('{') {
            return Some(Self::Miniedit);
        }
        if text.lines().any(|line| line.starts_with("topology:")) {
            return Some(Self::Containerlab);
        }
        let assigns = |line: &str| kathara::assignment(line).is_some();
        text.lines().any(assigns).then_some(Self::Kathara)
    }
}

/// Imports a text of this format. `file` is its path, for messages; `lab` is the name of a lab that
/// has none; `beside` contains Kathará's startup files.
pub fn import(
    format: Format,
    file: &str,
    lab: &str,
    text: &str,
    beside: &[Beside],
) -> Result<Imported, Problems> {
    let draft = match format {
        Format::Containerlab => containerlab::read(file, text)?,
        Format::Kathara => kathara::read(file, text, beside)?,
        Format::Miniedit => miniedit::read(file, text)?,
    };
    write::write(file, lab, draft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_name_or_content() {
        let is = |file, text| Format::recognise(file, text);
        assert_eq!(is("x/lab.conf", ""), Some(Format::Kathara));
        assert_eq!(is("x/a.mn", ""), Some(Format::Miniedit));
        assert_eq!(is("a.clab.yml", ""), Some(Format::Containerlab));
        assert_eq!(is("a.yml", "name: a\ntopology:\n"), Some(Format::Containerlab));
        assert_eq!(is("a.txt", "pc1[0]=\"A\"\n"), Some(Format::Kathara));
        assert_eq!(is("a.json", " {\"hosts\": []}"), Some(Format::Miniedit));
        assert_eq!(is("a.txt", "hello"), None);
    }
}
