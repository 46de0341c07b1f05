//! Labs of other programs become topology files.
//!
//! Every importer makes a `Draft` of a text; `names` gives it names that Kaido takes, `write` makes
//! a topology file of it. What has no place in that file is never dropped without a note.
#![forbid(unsafe_code)]

mod containerlab;
mod draft;
mod kathara;
mod miniedit;
mod names;
mod write;

use model::topology::Problems;
use serde::Serialize;

/// Whose file it is.
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

/// A file that stands beside the lab's own.
#[derive(Debug, Clone)]
pub struct Beside {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// Something that is not, or not as it was, in the topology file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The line that it is about, from 1; none if it is about no single one.
    pub line: Option<usize>,
    /// What became of it.
    pub text: String,
}

/// A topology file, and what it lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The lab's name.
    pub lab: String,
    /// The topology file's text, with the notes as comments at its top.
    pub topology: String,
    /// What was not carried over, and what was assumed.
    pub notes: Vec<Note>,
}

impl Format {
    /// What a lab is called that has no name: as its file, or as the folder of a lab.conf.
    pub fn lab_of(file: &str) -> String {
        let mut parts = file.rsplit('/').filter(|part| !part.is_empty());
        let last = parts.next().unwrap_or_default();
        let of = if last == "lab.conf" { parts.next().unwrap_or_default() } else { last };
        names::lab_name(of.split('.').next().unwrap_or_default())
    }

    /// Whose file this is, by its name or else by what is in it.
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

/// Makes a topology file of a text of this format. `file` is its path, for messages; `lab` the name
/// of a lab that has none; `beside` are Kathará's startup files.
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
