//! Removes a lab, or the remains of one.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;

use crate::daemons::processes::{end_all, processes};
use crate::daemons::tenants;
use crate::daemons::xdp;
use crate::files::remove_whatever;
use crate::life::holder::Holder;
use crate::life::state::{
    Labs, MARKER, Phase, State, UNNAMED, is_lab, namespaces_directory, read_topology,
};
use crate::node::surplus;
use crate::{Error, attached};

/// Result of `gc` for a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Collected {
    /// Lab name.
    pub name: String,
    /// True if it was removed; a lab in use is left alone.
    pub removed: bool,
    /// The error if it could not be removed and needs attention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Labs {
    /// Takes a lab down. Its topology file is not needed.
    pub fn down(&self, name: &str) -> Result<(), Error> {
        if !model::is_lab_name(name) {
            return Err(Error::BadName(name.into()));
        }
        let directory = self.directory(name);
        if !is_lab(&directory) {
            return Err(Error::NoLab { name: name.into(), known: self.names()? });
        }
        let _lock = self.lock(name)?;
        refuse_inside(&directory, name)?;
        self.remove(&directory)
    }

    /// Removes the remains of commands that were killed, and nothing else. A lab that cannot be
    /// removed does not prevent the removal of others.
    pub fn gc(&self) -> Result<Vec<Collected>, Error> {
        let mut collected = Vec::new();
        for name in self.names()? {
            if self.phase(&name) != Phase::Broken {
                continue;
            }
            let directory = self.directory(&name);
            let done = self.lock(&name).and_then(|_lock| {
                refuse_inside(&directory, &name)?;
                self.remove(&directory)
            });
            let error = match &done {
                Ok(()) | Err(Error::Busy(_)) => None,
                Err(error) => Some(with_causes(error)),
            };
            collected.push(Collected { name, removed: done.is_ok(), error });
        }
        self.remove_unnamed();
        private::remove_stale_namespace_locks();
        self.remove_empty_directories();
        Ok(collected)
    }

    /// Terminates the lab's processes, then removes the pinned state of its data planes, its
    /// namespaces and its directory. The directory is last, since the other resources are found
    /// through it. The caller holds the lock.
    pub(crate) fn remove(&self, directory: &Path) -> Result<(), Error> {
        if let Some(mut state) = State::read(directory) {
            state.phase = Phase::Stopping;
            state.holder = Holder::own();
            // Writing fails on a full disk: removing the lab is all the more important then.
            let _ = state.write(directory);
        }
        tenants::end_all(directory);
        end_all(directory)?;
        if let Some(topology) = read_topology(directory) {
            surplus::delete(directory, &topology);
        }
        attached::release(directory)?;
        xdp::unmount_all(directory)?;
        let namespaces = namespaces_directory(directory);
        if let Ok(entries) = fs::read_dir(&namespaces) {
            for entry in entries.flatten() {
                netlink::Namespace::remove_path(entry.path())?;
            }
        }
        // Not `remove_dir_all`, which would descend into a remaining mount.
        match fs::remove_dir(&namespaces) {
            Ok(()) => {}
            // A regular file in its place is removed with the other files.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(Error::file("remove", namespaces)(error)),
        }
        remove_files(directory).map_err(Error::file("remove", directory))?;
        private::remove_stale_namespace_locks();
        self.remove_empty_directories();
        Ok(())
    }

    /// Removes labs of commands that were killed before the final name was set. These contain only
    /// files.
    fn remove_unnamed(&self) {
        let Ok(entries) = fs::read_dir(self.root().join("labs")) else { return };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        for name in names.filter(|name| is_unnamed(&self.directory(name), name)) {
            if let Ok(_lock) = self.lock(&name) {
                // The next `gc` retries on failure.
                let _ = fs::remove_dir_all(self.directory(&name));
            }
        }
    }

    /// Removes the empty directories as well, to restore the machine's original state.
    pub(crate) fn remove_empty_directories(&self) {
        // Fails if another lab uses the directory, as intended.
        let _ = fs::remove_dir(self.root().join("labs"));
        if self.is_owned() {
            let _ = fs::remove_dir(self.root());
        }
    }
}

/// Returns an error if this command runs in the lab: it would kill itself before it has finished.
fn refuse_inside(directory: &Path, name: &str) -> Result<(), Error> {
    let own = std::process::id() as i32;
    if processes(directory).contains(&own) { Err(Error::Inside(name.into())) } else { Ok(()) }
}

fn with_causes(error: &Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Removes a lab's directory. The marker is last: until then the directory is recognized as a
/// lab's.
fn remove_files(directory: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() == MARKER {
            continue;
        }
        remove_whatever(&entry.path())?;
    }
    match remove_whatever(&directory.join(MARKER)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::remove_dir(directory)
}

/// True if a directory belongs to a lab that was killed before it had its final name: the name
/// contains a PID, and the directory has a marker or only those entries that are created before the
/// marker.
fn is_unnamed(directory: &Path, name: &str) -> bool {
    let process = name.strip_prefix(UNNAMED).is_some_and(|pid| pid.parse::<u32>().is_ok());
    let bare = || {
        fs::read_dir(directory)
            .is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name() == "netns"))
    };
    process && (directory.join(MARKER).exists() || bare())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_that_became_a_directory_is_removed_with_the_lab() {
        let root = tempfile::tempdir().unwrap();
        let labs = Labs::at(root.path());
        let make = || {
            let marker = labs.directory("a").join(MARKER);
            fs::create_dir_all(&marker).unwrap();
            fs::write(marker.join("file"), "").unwrap();
        };
        make();
        labs.down("a").unwrap();
        assert!(!labs.directory("a").exists());
        make();
        assert!(labs.gc().unwrap()[0].removed && !labs.directory("a").exists());
    }

    #[test]
    fn a_lab_that_cannot_be_removed_keeps_no_other_one() {
        let root = tempfile::tempdir().unwrap();
        let labs = Labs::at(root.path());
        for name in ["a", "b"] {
            fs::create_dir_all(namespaces_directory(&labs.directory(name))).unwrap();
            fs::write(labs.directory(name).join(MARKER), "").unwrap();
        }
        // In the place of a namespace.
        let stubborn = namespaces_directory(&labs.directory("a")).join("h1/x");
        fs::create_dir_all(&stubborn).unwrap();
        let [a, b] = labs.gc().unwrap().try_into().unwrap();
        assert!(!a.removed && a.error.is_some_and(|error| error.contains("h1")));
        assert_eq!(b, Collected { name: "b".into(), removed: true, error: None });
        assert!(stubborn.exists() && !labs.directory("b").exists());
    }
}
