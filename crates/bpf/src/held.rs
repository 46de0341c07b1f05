//! What a program's successor goes on with: the outer headers of packets that are with service
//! functions, and between which addresses their packets went.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use libbpf_rs::{Map, MapCore as _, MapHandle};

use crate::attach::pin;
use crate::srv6::types;
use crate::{Error, Mapped, Srv6};

/// The maps, by the names of their pins.
const PINS: [&str; 4] = ["control", "slots", "taken", "passages"];

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
        let [control, slots, taken, passages] =
            PINS.map(|name| MapHandle::from_pinned_path(path(prefix, name)).ok());
        let control = Mapped::<types::control>::new("control", &control?).ok()?;
        let magic = control.read(0).magic;
        Some(Self { slots: slots?, taken: taken?, passages: passages?, magic })
    }

    /// Whether the maps are of the sizes of these.
    pub(crate) fn fits(&self, slots: u32, passages: u32) -> bool {
        self.slots.max_entries() == slots && self.passages.max_entries() == passages
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
    /// What packets of this program are with service functions.
    pub fn held(&self) -> Result<Held, Error> {
        let [_, slots, taken, passages] = self.held_maps();
        let handle = |name, map: &Map<'_>| {
            MapHandle::try_from(map).map_err(|source| Error::Map {
                map: name,
                doing: "open",
                source,
            })
        };
        Ok(Held {
            slots: handle("slots", slots)?,
            taken: handle("taken", taken)?,
            passages: handle("passages", passages)?,
            magic: self.control.read(0).magic,
        })
    }

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
