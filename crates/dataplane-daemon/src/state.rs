//! The state directory of a data plane: its ownership, and the cleanup after a failed start.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::dataplane::Dataplane as Which;

use crate::Error;

/// A directory that a daemon is about to use.
pub(crate) struct State {
    path: PathBuf,
    /// True if the file system for pins was already mounted.
    was_mounted: bool,
}

impl State {
    /// Claims `path` for this network namespace, unless ports of another namespace are pinned
    /// there.
    pub(crate) fn claim(path: &Path) -> Result<Self, Error> {
        let state = Self { path: path.into(), was_mounted: is_mounted(path) };
        let mine = netlink::Namespace::current()?.inode()?.to_string();
        let file = state.namespace();
        let failed = |source| Error::State { path: file.clone(), source };
        let theirs = match std::fs::read_to_string(&file) {
            Ok(text) => Some(text).filter(|text| *text != mine),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if theirs.is_some() && state.has_pins() {
            return Err(Error::Elsewhere(path.into()));
        }
        private::replace(&file, mine.as_bytes()).map_err(failed)?;
        Ok(state)
    }

    /// Returns the path of the file that identifies the namespace of the pinned ports.
    fn namespace(&self) -> PathBuf {
        self.path.join("namespace")
    }

    /// Returns true if there are pins.
    fn has_pins(&self) -> bool {
        let entries = std::fs::read_dir(pins(&self.path)).into_iter().flatten().flatten();
        // Names with a dot are the file system's own.
        let mut names = entries.map(|entry| entry.file_name());
        names.any(|name| !name.to_string_lossy().contains('.'))
    }

    /// Cleans up, unless there are pins. Ignores errors: a leftover file is useless but harmless.
    pub(crate) fn leave(self) {
        if self.has_pins() {
            return;
        }
        if !self.was_mounted {
            let _ = bpf::pin::unmount_pins(&pins(&self.path));
        }
        // If it is still mounted, this has no effect.
        let _ = std::fs::remove_dir(pins(&self.path));
        let _ = std::fs::remove_file(self.namespace());
    }
}

/// Returns the path of the pins.
fn pins(state: &Path) -> PathBuf {
    state.join("bpf")
}

/// Fails if the file system with the pins of the program's ports was unmounted.
pub(crate) fn check(state: &Path, which: Which) -> Result<(), Error> {
    if which == Which::Xdp && !is_mounted(state) {
        return Err(Error::Unmounted(state.into()));
    }
    Ok(())
}

/// Returns true if the file system for pins is mounted.
fn is_mounted(state: &Path) -> bool {
    let device = |path: &Path| std::fs::metadata(path).map(|found| found.dev()).ok();
    device(&pins(state)).is_some_and(|pins| Some(pins) != device(state))
}
