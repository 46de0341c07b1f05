//! State that a successor program takes over: the outer headers of packets in service functions,
//! and the reply table.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore as _, MapHandle};

use crate::pin::pin;
use crate::skeleton::{OpenSrv6Maps, Srv6Maps, types};
use crate::{Error, Mapped};

/// The maps, by the names of their pins. The map with the prefix of tags is last: until it is
/// pinned, the pins are those of the previous program.
const PINS: [&str; 4] = ["slots", "slot_heads", "passages", "control"];

/// State of the packets that a program has in service functions.
pub struct Held {
    slots: MapHandle,
    taken: MapHandle,
    passages: MapHandle,
    /// Prefix of the tags of these packets.
    pub(crate) magic: u32,
}

impl Held {
    /// Opens the pins of [`crate::Srv6::keep_held`], if they are complete.
    pub fn pinned(prefix: &Path) -> Option<Self> {
        let [slots, taken, passages, control] =
            PINS.map(|name| MapHandle::from_pinned_path(path(prefix, name)).ok());
        let control = Mapped::<types::control>::new("control", &control?).ok()?;
        let magic = control.read(0).magic;
        Some(Self { slots: slots?, taken: taken?, passages: passages?, magic })
    }

    /// Makes a program that is not loaded yet reuse the maps that have its sizes. `slots` is the
    /// number of slots of all CPUs.
    pub(crate) fn reuse(
        &self,
        maps: &mut OpenSrv6Maps<'_>,
        slots: u32,
        passages: u32,
    ) -> libbpf_rs::Result<()> {
        for (new, held, entries, size) in [
            (&mut maps.slots, &self.slots, slots, size_of::<types::slot>()),
            (&mut maps.slot_heads, &self.taken, 1, size_of::<u64>()),
            (&mut maps.passages, &self.passages, passages, size_of::<types::passages>()),
        ] {
            if held.max_entries() == entries && held.value_size() as usize == size {
                new.reuse_fd(held.as_fd())?;
            }
        }
        Ok(())
    }

    /// Pins the state of a program, replacing that of an earlier one.
    pub(crate) fn keep(maps: &Srv6Maps<'_>, prefix: &Path) -> Result<(), Error> {
        let kept = [&maps.slots, &maps.slot_heads, &maps.passages, &maps.control];
        for (name, map) in PINS.into_iter().zip(kept) {
            repin(map.as_fd(), &path(prefix, name))?;
        }
        Ok(())
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
