//! The folder of a data plane's state: whose it is, and what a start that failed leaves of it.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::dataplane::Dataplane as Which;

use crate::Error;

/// A folder that a daemon is about to use.
pub(crate) struct State {
    path: PathBuf,
    /// Whether somebody has mounted the file system for pins beforehand.
    was_mounted: bool,
}

impl State {
    /// Makes `path` this network namespace's, unless ports of another one are at work there.
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

    /// The identity of the namespace whose ports are pinned.
    fn namespace(&self) -> PathBuf {
        self.path.join("namespace")
    }

    /// Whether anything is kept at work.
    fn has_pins(&self) -> bool {
        let entries = std::fs::read_dir(pins(&self.path)).into_iter().flatten().flatten();
        // What has a dot is the file system's own.
        let mut names = entries.map(|entry| entry.file_name());
        names.any(|name| !name.to_string_lossy().contains('.'))
    }

    /// Leaves nothing behind that keeps nothing at work. What cannot be removed is no use to
    /// anybody, and in nobody's way.
    pub(crate) fn leave(self) {
        if self.has_pins() {
            return;
        }
        if !self.was_mounted {
            let _ = bpf::attach::unmount_pins(&pins(&self.path));
        }
        // Where it is still mounted this does nothing.
        let _ = std::fs::remove_dir(pins(&self.path));
        let _ = std::fs::remove_file(self.namespace());
    }
}

/// Where ports are pinned.
fn pins(state: &Path) -> PathBuf {
    state.join("bpf")
}

/// Refuses where what keeps the program's ports at work is not there any more.
pub(crate) fn check(state: &Path, which: Which) -> Result<(), Error> {
    if which == Which::Xdp && !is_mounted(state) {
        return Err(Error::Unmounted(state.into()));
    }
    Ok(())
}

/// Whether the file system for pins is there.
fn is_mounted(state: &Path) -> bool {
    let device = |path: &Path| std::fs::metadata(path).map(|found| found.dev()).ok();
    device(&pins(state)).is_some_and(|pins| Some(pins) != device(state))
}
