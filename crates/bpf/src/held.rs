//! What a program's successor goes on with: the outer headers of packets that are with service
//! functions, and between which addresses their packets went.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore as _, MapHandle};

use crate::attach::pin;
use crate::srv6::types;
use crate::{Error, Mapped, Srv6};

/// The maps, by the names of their pins. What says the tags' magic comes last: until then the pins
/// are those of the program before.
const PINS: [&str; 4] = ["slots", "taken", "passages", "control"];

/// The packets that a program has with service functions.
pub struct Held {
    pub(crate) slots: MapHandle,
    pub(crate) taken: MapHandle,
    pub(crate) passages: MapHandle,
    /// What is in front of these packets' tags.
    pub(crate) magic: u32,
}

impl Held {
    /// What [`Srv6::keep_held`] pinned, if it is whole.
    pub fn pinned(prefix: &Path) -> Option<Self> {
        let [slots, taken, passages, control] =
            PINS.map(|name| MapHandle::from_pinned_path(path(prefix, name)).ok());
        let control = Mapped::<types::control>::new("control", &control?).ok()?;
        let magic = control.read(0).magic;
        Some(Self { slots: slots?, taken: taken?, passages: passages?, magic })
    }

    /// The maps that another program may have as they are, with its sizes: each with its name.
    pub(crate) fn fitting(&self, slots: u32, passages: u32) -> Vec<(&'static str, &MapHandle)> {
        let fits = |map: &MapHandle, entries, size| {
            map.max_entries() == entries && map.value_size() as usize == size
        };
        [
            ("slots", &self.slots, fits(&self.slots, slots, size_of::<types::slot>())),
            ("taken", &self.taken, fits(&self.taken, 1, size_of::<u64>())),
            (
                "passages",
                &self.passages,
                fits(&self.passages, passages, size_of::<types::passages>()),
            ),
        ]
        .into_iter()
        .filter_map(|(name, map, fits)| fits.then_some((name, map)))
        .collect()
    }

    /// Removes the pins.
    pub fn forget(prefix: &Path) -> std::io::Result<()> {
        for name in PINS {
            match std::fs::remove_file(path(prefix, name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Srv6 {
    /// Keeps it for the program of a later process, in place of an earlier one's; `prefix` is of
    /// the pins' names.
    pub fn keep_held(&self, prefix: &Path) -> Result<(), Error> {
        for (name, map) in PINS.into_iter().zip(self.held_maps()) {
            repin(map.as_fd(), &path(prefix, name))?;
        }
        Ok(())
    }
}

/// Pins a map in the place of another.
pub(crate) fn repin(map: std::os::fd::BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    // A BPF file system takes no dot in a name.
    let mut new = path.as_os_str().to_owned();
    new.push("new");
    let new = PathBuf::from(new);
    // Left by a process that was killed in between.
    let _ = std::fs::remove_file(&new);
    pin(map, &new)?;
    std::fs::rename(&new, path).map_err(|source| Error::Pin { path: path.into(), source })
}

fn path(prefix: &Path, name: &str) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(name);
    path.into()
}
