//! Why nothing is published.

use std::io;
use std::path::PathBuf;

/// Why nothing is published, or no more.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no device, and no file was named.
    #[error(
        "this machine has no ivshmem device (1af4:1110): `--to FILE` publishes in a file, or give the VM \
         one, with QEMU `-device ivshmem-plain,memdev=…`"
    )]
    NoDevice,
    /// There are several devices, and none was named.
    #[error("this machine has several ivshmem devices: `--to FILE` says which: {}", listed(.0))]
    Devices(Vec<PathBuf>),
    /// A device cannot be used.
    #[error("the device {} cannot be used", device.display())]
    Device {
        /// Its folder below /sys.
        device: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The memory is not to be had.
    #[error(transparent)]
    Write(#[from] vminfo::WriteError),
    /// A key is none.
    #[error(transparent)]
    Name(#[from] vminfo::BadName),
    /// What ends it cannot be waited for.
    #[error("cannot wait for signals: {0}")]
    Signals(#[source] nix::errno::Errno),
}

fn listed(all: &[PathBuf]) -> String {
    all.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
