//! What keeps a program at work when its daemon is gone: files in a BPF file system.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bpf::attach::{Attached, prepare_pins, unmount_pins};

use crate::Error;

/// The pin of the program's watch, beside those of ports. No interface is called so.
const WATCH: &str = "watch:";
/// The pin of the way from a tracer to the program.
const TRACE: &str = "watch:trace";
/// The pins of guards, with the interface's index behind.
const GUARD: &str = "watch:guard:";
/// The pins of what takes packets that come back from proxies' functions, with the interface's index
/// behind.
const BACK: &str = "watch:back:";
/// The pins of what service functions hold.
const HELD: &str = "watch:held:";

/// The folder of a data plane's pins.
#[derive(Debug)]
pub(crate) struct Pins(PathBuf);

impl Pins {
    /// The pins in `folder`, which need not be there.
    pub(crate) fn at(folder: &Path) -> Self {
        Self(folder.into())
    }

    /// The pins in `folder`, which is made a place for them.
    pub(super) fn prepare(folder: &Path) -> Result<Self, Error> {
        prepare_pins(folder)?;
        Ok(Self(folder.into()))
    }

    /// The pin of a port: a BPF file system takes no dot in a name, and an interface's name has no
    /// colon.
    pub(super) fn port(&self, name: &str) -> PathBuf {
        self.0.join(name.replace('.', ":"))
    }

    /// The watch's.
    pub(super) fn watch(&self) -> PathBuf {
        self.0.join(WATCH)
    }

    /// The tracer's.
    pub(super) fn trace(&self) -> PathBuf {
        self.0.join(TRACE)
    }

    /// The guard's of an interface.
    pub(super) fn guard(&self, interface: u32) -> PathBuf {
        self.0.join(format!("{GUARD}{interface}"))
    }

    /// The interfaces of guards, this daemon's and earlier ones'.
    pub(super) fn guards(&self) -> Result<Vec<u32>, Error> {
        self.indices(GUARD)
    }

    /// That of an interface that leads to a proxy's function.
    pub(super) fn back(&self, interface: u32) -> PathBuf {
        self.0.join(format!("{BACK}{interface}"))
    }

    /// The interfaces that lead to proxies' functions, this daemon's and earlier ones'.
    pub(super) fn backs(&self) -> Result<Vec<u32>, Error> {
        self.indices(BACK)
    }

    fn indices(&self, of: &str) -> Result<Vec<u32>, Error> {
        let pins = self.all()?;
        let names = pins.iter().filter_map(|pin| pin.file_name()?.to_str()?.strip_prefix(of));
        Ok(names.filter_map(|index| index.parse().ok()).collect())
    }

    /// What the names of pins of what service functions hold begin with.
    pub(super) fn held(&self) -> PathBuf {
        self.0.join(HELD)
    }

    /// The pins of ports, this daemon's and earlier ones'.
    pub(super) fn ports(&self) -> Result<Vec<PathBuf>, Error> {
        let mut pins = self.all()?;
        let name = |pin: &PathBuf| pin.file_name().map(|name| name.to_string_lossy().into_owned());
        pins.retain(|pin| name(pin).is_some_and(|name| !name.starts_with(WATCH)));
        Ok(pins)
    }

    /// What the pins of ports keep at work, by interface.
    pub(crate) fn attached(&self) -> Result<BTreeMap<u32, Attached>, Error> {
        let pinned = self.ports()?;
        let pinned = pinned.iter().filter_map(|pin| Attached::pinned(pin).ok());
        Ok(pinned.map(|attached| (attached.interface(), attached)).collect())
    }

    /// Removes the pins of other ports than these: what an earlier daemon left at work there ends.
    pub(super) fn sweep<'a>(&self, wanted: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
        let wanted: Vec<PathBuf> = wanted.into_iter().map(|name| self.port(name)).collect();
        for pin in self.ports()? {
            if !wanted.contains(&pin) {
                remove(&pin)?;
            }
        }
        Ok(())
    }

    /// Removes all pins but those of what takes packets that come back from functions: what nobody
    /// else holds ends.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        let stays = |pin: &Path| {
            pin.file_name().is_some_and(|name| name.to_string_lossy().starts_with(BACK))
        };
        self.all()?.iter().filter(|pin| !stays(pin)).try_for_each(|pin| remove(pin))
    }

    /// Leaves nothing behind, unless a port is at work.
    pub(crate) fn end(&self) -> Result<(), Error> {
        if self.0.exists() && self.ports()?.is_empty() {
            // They do not go with a view of the file system that is this process's alone.
            self.all()?.iter().try_for_each(|pin| remove(pin))?;
            // Without a program it may never have been mounted.
            unmount_pins(&self.0)?;
            match std::fs::remove_dir(&self.0) {
                // It is mounted outside of this process's view: whoever did that keeps it.
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {}
                removed => removed.map_err(|source| self.failed(source))?,
            }
        }
        Ok(())
    }

    fn all(&self) -> Result<Vec<PathBuf>, Error> {
        let failed = |source| self.failed(source);
        let mut pins = Vec::new();
        if !self.0.exists() {
            return Ok(pins);
        }
        for pin in std::fs::read_dir(&self.0).map_err(failed)? {
            let name = pin.map_err(failed)?.file_name();
            // What has a dot is the file system's own.
            if !name.to_string_lossy().contains('.') {
                pins.push(self.0.join(name));
            }
        }
        Ok(pins)
    }

    /// That the folder of pins cannot be used.
    pub(super) fn failed(&self, source: std::io::Error) -> Error {
        Error::Pins { path: self.0.clone(), source }
    }
}

/// Removes a pin.
pub(super) fn remove(pin: &Path) -> Result<(), Error> {
    std::fs::remove_file(pin).map_err(|source| Error::Pins { path: pin.into(), source })
}
