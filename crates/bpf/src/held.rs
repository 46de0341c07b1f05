//! State that a successor program takes over: the outer headers of packets in service functions,
//! and the reply table.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore as _, MapHandle};

use crate::attach::pin;
use crate::srv6::types;
use crate::{Error, Mapped, Srv6};

/// The maps, by the names of their pins. The map with the prefix of tags is last: until it is
/// pinned, the pins are those of the previous program.
const PINS: [&str; 4] = ["slots", "taken", "passages", "control"];

/// State of the packets that a program has in service functions.
pub struct Held {
    pub(crate) slots: MapHandle,
    pub(crate) taken: MapHandle,
    pub(crate) passages: MapHandle,
    /// Prefix of the tags of these packets.
    pub(crate) magic: u32,
}

impl Held {
    /// Opens the pins of [`Srv6::keep_held`], if they are complete.
    pub fn pinned(prefix: &Path) -> Option<Self> {
        let [slots, taken, passages, control] =
            PINS.map(|name| MapHandle::from_pinned_path(path(prefix, name)).ok());
        let control = Mapped::<types::control>::new("control", &control?).ok()?;
        let magic = control.read(0).magic;
        Some(Self { slots: slots?, taken: taken?, passages: passages?, magic })
    }

    /// Returns the maps, with their names, that another program of these sizes can reuse unchanged.
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
    /// Pins the state for the program of a later process, replacing that of an earlier one.
    /// `prefix` is the prefix of the pins' names.
    pub fn keep_held(&self, prefix: &Path) -> Result<(), Error> {
        for (name, map) in PINS.into_iter().zip(self.held_maps()) {
            repin(map.as_fd(), &path(prefix, name))?;
        }
        Ok(())
    }
}

/// Pins a map, replacing another pin.
pub(crate) fn repin(map: std::os::fd::BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    // A BPF file system does not allow dots in names.
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
