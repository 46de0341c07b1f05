//! The kernel of a virtual machine.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Kernel of a virtual machine. The file is kept open, so that every machine runs the same one even if
/// its path is replaced.
#[derive(Debug, Clone)]
pub struct Kernel(pub(in super::super) Arc<File>);

impl Kernel {
    /// Opens the file of a kernel. It needs no modules: a serial port, PCI and devtmpfs are built in.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or is not a bzImage of Linux.
    pub fn open(path: &Path) -> io::Result<Self> {
        // A pipe may never have a writer.
        let file = private::open_regular(path)?;
        let mut magic = [0; 4];
        // Documentation/arch/x86/boot.rst
        let is_kernel = file.read_exact_at(&mut magic, 0x202).is_ok() && &magic == b"HdrS";
        match is_kernel {
            true => Ok(Self(Arc::new(file))),
            false => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a bzImage of Linux"))
            }
        }
    }
}
