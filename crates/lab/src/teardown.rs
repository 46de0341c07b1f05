//! Taking a lab away, whatever is left of it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;

use crate::processes::{end_all, processes};
use crate::state::{Labs, MARKER, Phase, State, UNNAMED, is_lab, namespaces_folder};
use crate::{Error, attached, xdp};

/// What `gc` did with a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Collected {
    /// The lab.
    pub name: String,
    /// Whether it is gone; a lab that is at work is left alone.
    pub removed: bool,
    /// Why it could not be removed, if somebody should see to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Labs {
    /// Takes a lab down. The file that it came from is not needed.
    pub fn down(&self, name: &str) -> Result<(), Error> {
        if !model::is_lab_name(name) {
            return Err(Error::BadName(name.into()));
        }
        let folder = self.folder(name);
        if !is_lab(&folder) {
            return Err(Error::NoLab { name: name.into(), known: self.names()? });
        }
        let _lock = self.lock(name)?;
        refuse_inside(&folder, name)?;
        self.remove(&folder)
    }

    /// Removes what commands that were killed have left behind, and nothing else. What cannot be removed keeps
    /// nothing else from it.
    pub fn gc(&self) -> Result<Vec<Collected>, Error> {
        let mut collected = Vec::new();
        for name in self.names()? {
            if self.phase(&name) != Phase::Broken {
                continue;
            }
            let folder = self.folder(&name);
            let done = self.lock(&name).and_then(|_lock| {
                refuse_inside(&folder, &name)?;
                self.remove(&folder)
            });
            let error = match &done {
                Ok(()) | Err(Error::Busy(_)) => None,
                Err(error) => Some(with_causes(error)),
            };
            collected.push(Collected { name, removed: done.is_ok(), error });
        }
        self.remove_unnamed();
        private::remove_stale_namespace_locks();
        self.remove_empty_folders();
        Ok(collected)
    }

    /// Ends the lab's processes, then what its data planes keep at work, then its namespaces, then
    /// its folder: the folder last, since all the rest is found through it. The caller holds the
    /// lock.
    pub(crate) fn remove(&self, folder: &Path) -> Result<(), Error> {
        if let Some(mut state) = State::read(folder) {
            state.phase = Phase::Stopping;
            // On a full disk it cannot be written: all the more must the lab go.
            let _ = state.write(folder);
        }
        end_all(folder)?;
        attached::release(folder)?;
        xdp::unmount_all(folder)?;
        let namespaces = namespaces_folder(folder);
        if let Ok(entries) = fs::read_dir(&namespaces) {
            for entry in entries.flatten() {
                netlink::Namespace::remove_path(entry.path())?;
            }
        }
        // Not `remove_dir_all`: should a mount still be there, nothing behind it is touched.
        match fs::remove_dir(&namespaces) {
            Ok(()) => {}
            // What stands in its place is a file like others.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(Error::file("remove", namespaces)(error)),
        }
        remove_files(folder).map_err(Error::file("remove", folder))?;
        private::remove_stale_namespace_locks();
        self.remove_empty_folders();
        Ok(())
    }

    /// A lab that was killed before it had its name has nothing but files.
    fn remove_unnamed(&self) {
        let Ok(entries) = fs::read_dir(self.root().join("labs")) else { return };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        for name in names.filter(|name| is_unnamed(&self.folder(name), name)) {
            if let Ok(_lock) = self.lock(&name) {
                // What cannot be removed now is tried again by the next `gc`.
                let _ = fs::remove_dir_all(self.folder(&name));
            }
        }
    }

    /// The machine as it was: no empty folder stays either.
    pub(crate) fn remove_empty_folders(&self) {
        // Another lab may be in there: then they stay.
        let _ = fs::remove_dir(self.root().join("labs"));
        if self.is_owned() {
            let _ = fs::remove_dir(self.root());
        }
    }
}

/// An error if this command runs in the lab: it would end itself before all is gone.
fn refuse_inside(folder: &Path, name: &str) -> Result<(), Error> {
    let own = std::process::id() as i32;
    if processes(folder).contains(&own) { Err(Error::Inside(name.into())) } else { Ok(()) }
}

fn with_causes(error: &Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Removes a lab's folder, the marker last: until then it is known for a lab's.
fn remove_files(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == MARKER {
            continue;
        }
        remove_whatever(&entry.path())?;
    }
    match remove_whatever(&folder.join(MARKER)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::remove_dir(folder)
}

/// Removes a file, or a folder with all that is in it.
pub(crate) fn remove_whatever(path: &Path) -> std::io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// Whether a folder is that of a lab that was killed before it had its name: called after a
/// process, with a marker, or with nothing but what is made before the marker.
fn is_unnamed(folder: &Path, name: &str) -> bool {
    let process = name.strip_prefix(UNNAMED).is_some_and(|pid| pid.parse::<u32>().is_ok());
    let bare = || {
        fs::read_dir(folder)
            .is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name() == "netns"))
    };
    process && (folder.join(MARKER).exists() || bare())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_that_somebody_has_made_a_folder_goes_with_the_lab() {
        let root = tempfile::tempdir().unwrap();
        let labs = Labs::at(root.path());
        let make = || {
            let marker = labs.folder("a").join(MARKER);
            fs::create_dir_all(&marker).unwrap();
            fs::write(marker.join("file"), "").unwrap();
        };
        make();
        labs.down("a").unwrap();
        assert!(!labs.folder("a").exists());
        make();
        assert!(labs.gc().unwrap()[0].removed && !labs.folder("a").exists());
    }

    #[test]
    fn a_lab_that_cannot_be_removed_keeps_no_other_one() {
        let root = tempfile::tempdir().unwrap();
        let labs = Labs::at(root.path());
        for name in ["a", "b"] {
            fs::create_dir_all(namespaces_folder(&labs.folder(name))).unwrap();
            fs::write(labs.folder(name).join(MARKER), "").unwrap();
        }
        // Where a namespace is expected.
        let stubborn = namespaces_folder(&labs.folder("a")).join("h1/x");
        fs::create_dir_all(&stubborn).unwrap();
        let [a, b] = labs.gc().unwrap().try_into().unwrap();
        assert!(!a.removed && a.error.is_some_and(|error| error.contains("h1")));
        assert_eq!(b, Collected { name: "b".into(), removed: true, error: None });
        assert!(stubborn.exists() && !labs.folder("b").exists());
    }
}
