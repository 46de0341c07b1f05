//! Pins, which keep programs attached after the daemon exits: files in a BPF file system.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bpf::attach::Attached;
use bpf::pin::{prepare_pins, unmount_pins};

use crate::Error;

/// Pin of the program's watchdog timer, in the same directory as those of ports. No interface can
/// have this name.
const WATCH: &str = "watch:";
/// Pin of the tail call map from a tracer to the program.
const TRACE: &str = "watch:trace";
/// Prefix of the pins of egress filters, followed by the interface index.
const GUARD: &str = "watch:guard:";
/// Prefix of the pins of programs that handle packets from proxies' functions, followed by the
/// interface index.
const BACK: &str = "watch:back:";
/// Prefix of the pins of ports' ingress filters, followed by the interface index.
const FILTER: &str = "watch:filter:";
/// Prefix of the pins of service functions' state.
const HELD: &str = "watch:held:";

/// The directory of a data plane's pins.
#[derive(Debug)]
pub(crate) struct Pins(PathBuf);

impl Pins {
    /// Uses the pins in `directory`, which need not exist.
    pub(crate) fn at(directory: &Path) -> Self {
        Self(directory.into())
    }

    /// Uses the pins in `directory`, and prepares it for pins.
    pub(super) fn prepare(directory: &Path) -> Result<Self, Error> {
        prepare_pins(directory)?;
        Ok(Self(directory.into()))
    }

    /// Returns the pin of a port: its index, since names can be swapped, and its name in the file.
    /// A BPF file system does not allow dots in names, and interface names cannot contain a colon.
    pub(super) fn port(&self, index: u32, name: &str) -> PathBuf {
        self.0.join(format!("{index}:{}", name.replace('.', ":")))
    }

    /// Returns the pin of the watchdog timer.
    pub(super) fn watch(&self) -> PathBuf {
        self.0.join(WATCH)
    }

    /// Returns the pin of the tracer.
    pub(super) fn trace(&self) -> PathBuf {
        self.0.join(TRACE)
    }

    /// Returns the pin of an interface's egress filter.
    pub(super) fn guard(&self, interface: u32) -> PathBuf {
        self.0.join(format!("{GUARD}{interface}"))
    }

    /// Returns the interfaces with egress filters, including those of earlier daemons.
    pub(super) fn guards(&self) -> Result<Vec<u32>, Error> {
        self.indices(GUARD)
    }

    /// Returns the pin of an interface that leads to a proxy's function.
    pub(super) fn back(&self, interface: u32) -> PathBuf {
        self.0.join(format!("{BACK}{interface}"))
    }

    /// Returns the interfaces that lead to functions of proxies, including those of earlier
    /// daemons.
    pub(super) fn backs(&self) -> Result<Vec<u32>, Error> {
        self.indices(BACK)
    }

    /// Returns the pin of a port's ingress filter.
    pub(super) fn filter(&self, interface: u32) -> PathBuf {
        self.0.join(format!("{FILTER}{interface}"))
    }

    /// Returns the ports with ingress filters, including those of earlier daemons.
    pub(super) fn filters(&self) -> Result<Vec<u32>, Error> {
        self.indices(FILTER)
    }

    fn indices(&self, of: &str) -> Result<Vec<u32>, Error> {
        let pins = self.all()?;
        let names = pins.iter().filter_map(|pin| pin.file_name()?.to_str()?.strip_prefix(of));
        Ok(names.filter_map(|index| index.parse().ok()).collect())
    }

    /// Returns the prefix of the pins of service functions' state.
    pub(super) fn held(&self) -> PathBuf {
        self.0.join(HELD)
    }

    /// Returns the pins of ports, including those of earlier daemons.
    pub(super) fn ports(&self) -> Result<Vec<PathBuf>, Error> {
        let mut pins = self.all()?;
        let name = |pin: &PathBuf| pin.file_name().map(|name| name.to_string_lossy().into_owned());
        pins.retain(|pin| name(pin).is_some_and(|name| !name.starts_with(WATCH)));
        Ok(pins)
    }

    /// Returns the pinned attachments of ports to existing interfaces, by interface.
    pub(crate) fn attached(&self) -> Result<BTreeMap<u32, Attached>, Error> {
        let named = self.attached_by_name()?.into_iter();
        Ok(named.map(|(_, attached)| (attached.interface(), attached)).collect())
    }

    /// Returns these attachments with the ports' names in the file.
    pub(super) fn attached_by_name(&self) -> Result<Vec<(String, Attached)>, Error> {
        let mut found = Vec::new();
        for pin in self.ports()? {
            if let Ok(attached) = Attached::pinned(&pin)
                && attached.interface() != 0
            {
                found.push((port_name(&pin, attached.interface()), attached));
            }
        }
        Ok(found)
    }

    /// Removes the pins of all ports other than `wanted`, which detaches programs of an earlier
    /// daemon.
    pub(super) fn sweep(&self, wanted: &BTreeSet<PathBuf>) -> Result<(), Error> {
        for pin in self.ports()? {
            if !wanted.contains(&pin) {
                remove(&pin)?;
            }
        }
        Ok(())
    }

    /// Removes all pins except those of programs that handle packets from functions. Programs
    /// without another reference are detached.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        let stays = |pin: &Path| {
            pin.file_name().is_some_and(|name| name.to_string_lossy().starts_with(BACK))
        };
        self.all()?.iter().filter(|pin| !stays(pin)).try_for_each(|pin| remove(pin))
    }

    /// Removes everything, unless a port is active.
    pub(crate) fn end(&self) -> Result<(), Error> {
        if self.0.exists() && self.attached()?.is_empty() {
            // Removed one by one, since the pins outlive a mount that only this process sees.
            self.all()?.iter().try_for_each(|pin| remove(pin))?;
            // Without a program, the file system may never have been mounted.
            unmount_pins(&self.0)?;
            match std::fs::remove_dir(&self.0) {
                // It is also mounted outside this process's mount namespace, so it is kept.
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
            let pin = pin.map_err(failed)?;
            let name = pin.file_name();
            // Names with a dot belong to the file system itself, and directories to other programs:
            // `tc` uses any BPF file system that it finds.
            let is_directory = pin.file_type().map_err(failed)?.is_dir();
            if !is_directory && !name.to_string_lossy().contains('.') {
                pins.push(self.0.join(name));
            }
        }
        Ok(pins)
    }

    /// Returns the error that the directory of pins cannot be used.
    pub(super) fn failed(&self, source: std::io::Error) -> Error {
        Error::Pins { path: self.0.clone(), source }
    }
}

/// Returns the name in the pin of a port with this index. Pins of earlier versions lack the index.
fn port_name(pin: &Path, index: u32) -> String {
    let name = pin.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_prefix(&format!("{index}:")).unwrap_or(&name);
    name.replace(':', ".")
}

/// Removes a pin.
pub(super) fn remove(pin: &Path) -> Result<(), Error> {
    std::fs::remove_file(pin).map_err(|source| Error::Pins { path: pin.into(), source })
}
