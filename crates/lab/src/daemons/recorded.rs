//! The network namespaces of a lab as recorded in its directory. They are mounted there only in the
//! mount namespace of `lab up`: commands in another one (`ip netns exec`, a unit with `PrivateTmp=`)
//! find the lab's processes by this record.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use netlink::Namespace;
use serde::{Deserialize, Serialize};

use crate::life::state::namespaces_directory;
use crate::{Error, files};

/// Device and inode of a namespace. The kernel uses them again after its end.
pub(super) type Identity = (u64, u64);

/// The record.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    /// Boot of the machine: cookies are unique until the next one.
    boot: String,
    namespaces: Vec<Recorded>,
    /// Cookie of the namespace of attached interfaces, if there are any.
    machine: Option<u64>,
}

/// A network namespace.
#[derive(Debug, Serialize, Deserialize)]
struct Recorded {
    identity: Identity,
    cookie: u64,
}

fn record(directory: &Path) -> PathBuf {
    directory.join("namespaces.json")
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Device and inode of a file.
pub(super) fn identity(file: &fs::Metadata) -> Identity {
    (file.dev(), file.ino())
}

/// Records the namespaces that are mounted in a lab's directory. `machine`: path of that of attached
/// interfaces, if there are any.
pub(crate) fn write(directory: &Path, machine: &Path) -> Result<(), Error> {
    let mounted = namespaces_directory(directory);
    let mut namespaces = Vec::new();
    for entry in fs::read_dir(&mounted).map_err(Error::file("read", &mounted))? {
        let path = entry.map_err(Error::file("read", &mounted))?.path();
        let file = fs::symlink_metadata(&path).map_err(Error::file("read", &path))?;
        let cookie = Namespace::open(&path)?.cookie()?;
        namespaces.push(Recorded { identity: identity(&file), cookie });
    }
    let machine = match machine.exists() {
        true => Some(Namespace::open(machine)?.cookie()?),
        false => None,
    };
    let record_file = record(directory);
    let json = serde_json::to_vec(&Record { boot: boot(), namespaces, machine })
        .expect("a record has no map");
    private::replace(&record_file, &json).map_err(Error::file("write", record_file))
}

/// Cookies of the recorded namespaces; empty without a record of this boot.
pub(super) fn read(directory: &Path) -> BTreeMap<Identity, u64> {
    let namespaces = of_this_boot(directory).unwrap_or_default().namespaces;
    namespaces.into_iter().map(|one| (one.identity, one.cookie)).collect()
}

/// Cookie of the namespace of a lab's attached interfaces.
pub(crate) fn machine(directory: &Path) -> Option<u64> {
    of_this_boot(directory)?.machine
}

fn of_this_boot(directory: &Path) -> Option<Record> {
    let record: Record = serde_json::from_slice(&files::read(&record(directory)).ok()?).ok()?;
    (record.boot == boot()).then_some(record)
}
