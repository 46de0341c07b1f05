//! What has happened to a running lab: its events, and what nobody asked for.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::{Error, files};

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Seconds since the lab was ready; none before that.
    pub at: Option<f64>,
    /// What it was.
    #[serde(flatten)]
    pub what: Happening,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Happening {
    /// A step of the file's timeline is done, or has failed.
    Step {
        /// Its number, from 0.
        number: usize,
        /// Why it failed, if it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The emulator has ended, and its links are down.
    EmulatorEnded,
    /// There is an emulator again, and its links are up.
    EmulatorStarted,
    /// The emulator is there, and does not answer: what is due waits.
    EmulatorSilent,
    /// It answers again.
    EmulatorAnswers,
    /// An interface of an emulated link is gone, and the link is down.
    InterfaceGone {
        /// The node.
        node: String,
        /// The interface.
        interface: String,
    },
    /// Somebody has ended the cross traffic of one direction.
    TrafficStopped {
        /// The link.
        link: String,
        /// The node that sends.
        from: String,
    },
    /// The supervisor itself has begun to watch.
    Watching,
}

/// The time that the lab's moments are measured in: of the machine, since it started.
pub fn now() -> Duration {
    // This clock is always there.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

fn path(folder: &Path) -> PathBuf {
    folder.join("journal.jsonl")
}

/// Writes an entry behind the others. What there was no room for leaves a line cut off, which is to take no
/// other along.
pub(crate) fn append(folder: &Path, entry: &Entry) -> Result<(), Error> {
    let path = path(folder);
    let write = || {
        let mut file = private::append(&path)?;
        let mut line = if is_cut_off(&mut file)? { vec![b'\n'] } else { Vec::new() };
        line.extend(serde_json::to_vec(entry).expect("an entry is numbers and texts"));
        line.push(b'\n');
        file.write_all(&line)
    };
    write().map_err(Error::file("write", &path))
}

/// Whether the last line has no end.
fn is_cut_off(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// All entries, in order. A line that somebody was killed in the middle of is none.
pub(crate) fn read(folder: &Path) -> Vec<Entry> {
    let text = files::read_text(&path(folder)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written_and_half_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()), []);
        let (node, interface) = ("r1".to_owned(), "r2".to_owned());
        let all = [
            (None, Happening::Watching),
            (Some(1.5), Happening::Step { number: 0, error: None }),
            (Some(2.0), Happening::Step { number: 1, error: Some("no".into()) }),
            (Some(2.5), Happening::InterfaceGone { node, interface }),
        ]
        .map(|(at, what)| Entry { at, what });
        for entry in &all {
            append(folder.path(), entry).unwrap();
        }
        let file = File::options().append(true).open(path(folder.path()));
        file.unwrap().write_all(b"{\"at\": 3.0, \"what\": \"st").unwrap();
        assert_eq!(read(folder.path()), all);
        append(folder.path(), &all[0]).unwrap();
        assert_eq!(read(folder.path()), [&all[..], &all[..1]].concat());
    }
}
