//! Discovery of QEMU's ivshmem device, which shares memory between a VM and its host.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::sys::statfs::{SYSFS_MAGIC, fstatfs};

use crate::error::Error;

/// Directory of PCI devices in sysfs.
pub(crate) const DEVICES: &str = "/sys/bus/pci/devices";
/// PCI vendor ID (Red Hat) and device ID (QEMU, docs/specs/ivshmem-spec.rst).
const VENDOR: &str = "0x1af4";
const DEVICE: &str = "0x1110";
/// The shared memory is BAR 2.
const MEMORY: &str = "resource2";
/// The device is enabled if this file has another content than 0.
const SWITCH: &str = "enable";

/// Finds the only ivshmem device. Returns its memory.
pub(crate) fn find(devices: &Path) -> Result<PathBuf, Error> {
    let mut found = all(devices);
    match found.len() {
        0 => Err(Error::NoDevice),
        1 => Ok(found.remove(0)),
        _ => Err(Error::Devices(found)),
    }
}

fn all(devices: &Path) -> Vec<PathBuf> {
    let Ok(directory) = fs::read_dir(devices) else { return Vec::new() };
    let is = |device: &Path, file: &str, wanted: &str| {
        fs::read_to_string(device.join(file)).is_ok_and(|text| text.trim() == wanted)
    };
    let paths = directory.filter_map(|entry| Some(entry.ok()?.path()));
    let mut found: Vec<_> = paths
        .filter(|device| is(device, "vendor", VENDOR) && is(device, "device", DEVICE))
        .map(|device| device.join(MEMORY))
        .collect();
    found.sort();
    found
}

/// Returns true if a file in this directory is the memory of a device: elsewhere, files of other users may
/// have these names.
pub(crate) fn is_of_device(directory: &File, memory: &Path) -> bool {
    let is_in_sysfs = fstatfs(directory).is_ok_and(|at| at.filesystem_type() == SYSFS_MAGIC);
    memory.ends_with(MEMORY) && is_in_sysfs
}

/// Enables the device with this directory, because no driver has done so.
pub(crate) fn switch_on(device: &File) -> io::Result<()> {
    let open = |access| {
        let flags = access | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        openat(device, SWITCH, flags, Mode::empty()).map(File::from)
    };
    let switch = match open(OFlag::O_RDONLY) {
        Err(Errno::ENOENT) => return Ok(()),
        switch => switch?,
    };
    let mut state = String::new();
    switch.take(16).read_to_string(&mut state)?;
    // The user may be permitted to write to the memory of an enabled device only.
    if state.trim() == "0" { open(OFlag::O_WRONLY)?.write_all_at(b"1", 0) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(directory: &Path, name: &str, ids: [&str; 2]) {
        let device = directory.join(name);
        fs::create_dir(&device).unwrap();
        for (file, text) in ["vendor", "device"].into_iter().zip(ids) {
            fs::write(device.join(file), format!("{text}\n")).unwrap();
        }
        fs::write(device.join("enable"), "0\n").unwrap();
    }

    #[test]
    fn the_device_is_found_and_switched_on() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        device(here, "0000:00:02.0", ["0x1af4", "0x1000"]);
        assert!(matches!(find(here), Err(Error::NoDevice)));
        assert!(matches!(find(&here.join("none")), Err(Error::NoDevice)));
        device(here, "0000:00:04.0", [VENDOR, DEVICE]);
        let memory = here.join("0000:00:04.0/resource2");
        assert_eq!(find(here).unwrap(), memory);
        let device_of = |memory: &Path| File::open(memory.parent().unwrap()).unwrap();
        switch_on(&device_of(&memory)).unwrap();
        let switch = memory.with_file_name(SWITCH);
        assert_eq!(fs::read_to_string(&switch).unwrap(), "1\n");
        // A link leads nowhere, and outside of sysfs there is no device.
        let elsewhere = here.join("elsewhere");
        fs::write(&elsewhere, "0").unwrap();
        fs::remove_file(&switch).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &switch).unwrap();
        assert!(switch_on(&device_of(&memory)).is_err());
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "0");
        fs::remove_file(&switch).unwrap();
        switch_on(&device_of(&memory)).unwrap();
        assert!(!switch.exists() && !is_of_device(&device_of(&memory), &memory));
        let in_sysfs = Path::new("/sys/class/net/lo/resource2");
        assert!(is_of_device(&device_of(in_sysfs), in_sysfs));
        fs::write(&switch, "0\n").unwrap();
        device(here, "0000:00:05.0", [VENDOR, DEVICE]);
        match find(here) {
            Err(Error::Devices(all)) => {
                assert_eq!(all, [memory, here.join("0000:00:05.0/resource2")])
            }
            other => panic!("{other:?}"),
        }
    }
}
