//! The journal of a running lab: its scheduled events, and unexpected ones.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::Occurrence;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::{Error, files};

/// A journal entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Seconds since the lab became ready; none before that.
    pub at: Option<f64>,
    /// The event.
    #[serde(flatten)]
    pub what: Happening,
}

/// An event in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Happening {
    /// A step of the file's timeline was carried out or has failed.
    Step {
        /// Index of the step, from 0.
        number: usize,
        /// The error, if it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// An event that the file does not plan.
    #[serde(untagged)]
    Other(Occurrence),
}

impl From<Occurrence> for Happening {
    fn from(occurrence: Occurrence) -> Self {
        Self::Other(occurrence)
    }
}

/// Current time of the clock that all timestamps of a lab use: monotonic, since the machine booted.
pub fn now() -> Duration {
    // CLOCK_MONOTONIC always exists.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

fn path(directory: &Path) -> PathBuf {
    directory.join("journal.jsonl")
}

/// Appends an entry. If the last line was truncated, for example on a full disk, the entry starts
/// on a new line, so that only the truncated entry is lost.
pub(crate) fn append(directory: &Path, entry: &Entry) -> Result<(), Error> {
    let path = path(directory);
    let write = || {
        let mut file = private::append(&path)?;
        let mut line = if is_cut_off(&mut file)? { vec![b'\n'] } else { Vec::new() };
        line.extend(serde_json::to_vec(entry).expect("an entry is numbers and texts"));
        line.push(b'\n');
        file.write_all(&line)
    };
    write().map_err(Error::file("write", &path))
}

/// True if the last line is truncated.
fn is_cut_off(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Reads all entries, in order. Truncated lines, left by a process that was killed, are skipped.
pub(crate) fn read(directory: &Path) -> Vec<Entry> {
    let text = files::read_text(&path(directory)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written_and_half_ones_are_not() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(directory.path()), []);
        let (node, interface) = ("r1".to_owned(), "r2".to_owned());
        let all = [
            (None, Occurrence::Watching.into()),
            (Some(1.5), Happening::Step { number: 0, error: None }),
            (Some(2.0), Happening::Step { number: 1, error: Some("no".into()) }),
            (Some(2.5), Occurrence::InterfaceGone { node, interface }.into()),
        ]
        .map(|(at, what)| Entry { at, what });
        for entry in &all {
            append(directory.path(), entry).unwrap();
        }
        let file = File::options().append(true).open(path(directory.path()));
        file.unwrap().write_all(b"{\"at\": 3.0, \"what\": \"st").unwrap();
        assert_eq!(read(directory.path()), all);
        append(directory.path(), &all[0]).unwrap();
        assert_eq!(read(directory.path()), [&all[..], &all[..1]].concat());
    }
}
