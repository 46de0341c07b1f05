//! Discovery of QEMU's ivshmem device, which shares memory between a VM and its host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Directory of PCI devices in sysfs.
pub(crate) const DEVICES: &str = "/sys/bus/pci/devices";
/// PCI vendor ID (Red Hat) and device ID (QEMU, docs/specs/ivshmem-spec.rst).
const VENDOR: &str = "0x1af4";
const DEVICE: &str = "0x1110";
/// The shared memory is BAR 2.
const MEMORY: &str = "resource2";

/// Finds the only ivshmem device and enables it, because no driver has done so. Returns its memory.
pub(crate) fn find(devices: &Path) -> Result<PathBuf, Error> {
    let mut found = all(devices);
    let memory = match found.len() {
        0 => return Err(Error::NoDevice),
        1 => found.remove(0),
        _ => return Err(Error::Devices(found)),
    };
    switch_on(&memory)?;
    Ok(memory)
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

/// Enables the device to which a memory file belongs, if it belongs to one.
pub(crate) fn switch_on(memory: &Path) -> Result<(), Error> {
    let Some(device) = memory.parent().filter(|_| memory.ends_with(MEMORY)) else { return Ok(()) };
    let switch = device.join("enable");
    let is_on = fs::read_to_string(&switch).is_ok_and(|text| text.trim() != "0");
    match if is_on { Ok(()) } else { fs::write(&switch, "1") } {
        Err(why) if why.kind() != io::ErrorKind::NotFound => {
            Err(Error::Device { device: device.to_owned(), source: why })
        }
        _ => Ok(()),
    }
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
        assert_eq!(fs::read_to_string(here.join("0000:00:04.0/enable")).unwrap(), "1");
        device(here, "0000:00:05.0", [VENDOR, DEVICE]);
        match find(here) {
            Err(Error::Devices(all)) => {
                assert_eq!(all, [memory, here.join("0000:00:05.0/resource2")])
            }
            other => panic!("{other:?}"),
        }
    }
}
