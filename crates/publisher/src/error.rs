//! Errors of the publisher.

use std::io;
use std::path::PathBuf;

/// Reason that publishing failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no device, and no file was given.
    #[error(
        "this machine has no ivshmem device (1af4:1110): `--to FILE` publishes in a file, or give the VM \
         one, with QEMU `-device ivshmem-plain,memdev=…`"
    )]
    NoDevice,
    /// There are several devices, and none was selected.
    #[error("this machine has several ivshmem devices; select one with `--to FILE`: {}", listed(.0))]
    Devices(Vec<PathBuf>),
    /// A device cannot be used.
    #[error("the device {} cannot be used", device.display())]
    Device {
        /// Directory of the device below /sys.
        device: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The publication cannot be written.
    #[error(transparent)]
    Write(#[from] vminfo::WriteError),
    /// A key name is invalid.
    #[error(transparent)]
    Name(#[from] vminfo::BadName),
    /// Signals cannot be received.
    #[error("cannot wait for signals: {0}")]
    Signals(#[source] nix::errno::Errno),
}

fn listed(all: &[PathBuf]) -> String {
    all.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
