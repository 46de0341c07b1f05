//! The kernel of a virtual machine.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Maximum size of the file in bytes: each virtual machine has a copy in memory. Those of distributions
/// have 10 to 15 MiB.
pub(super) const LARGEST: u64 = 256 << 20;

/// Kernel of a virtual machine. The file is kept open, so that every machine runs the same one even if
/// its path is replaced.
#[derive(Debug, Clone)]
pub struct Kernel(pub(in super::super) Arc<File>);

impl Kernel {
    /// Opens the file of a kernel. It needs no modules: a serial port, PCI and devtmpfs are built in.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is not a bzImage of Linux, or is larger than 256 MiB.
    pub fn open(path: &Path) -> io::Result<Self> {
        // A pipe may never have a writer.
        let file = private::open_regular(path)?;
        let mut magic = [0; 4];
        // Documentation/arch/x86/boot.rst
        let is_kernel = file.read_exact_at(&mut magic, 0x202).is_ok() && &magic == b"HdrS";
        let refuse = |why: String| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        if !is_kernel {
            return refuse("it is not a bzImage of Linux".to_owned());
        }
        if file.metadata()?.len() > LARGEST {
            return refuse(too_large());
        }
        Ok(Self(Arc::new(file)))
    }
}

fn too_large() -> String {
    format!("it is larger than {} MiB", LARGEST >> 20)
}

/// Copies a kernel, which may have grown since it was opened.
pub(super) fn copy(from: &File, to: &File) -> io::Result<()> {
    copy_at_most(from, to, LARGEST)
}

fn copy_at_most(from: &File, mut to: &File, largest: u64) -> io::Result<()> {
    let copied = io::copy(&mut from.take(largest + 1), &mut to)?;
    if copied > largest { Err(io::Error::other(too_large())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_kernel_has_a_maximum_size() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[0; 0x202]).unwrap();
        file.write_all(b"HdrS").unwrap();
        file.as_file().set_len(LARGEST).unwrap();
        assert!(Kernel::open(file.path()).is_ok());
        file.as_file().set_len(LARGEST + 1).unwrap();
        let why = Kernel::open(file.path()).unwrap_err().to_string();
        assert_eq!(why, "it is larger than 256 MiB");
    }

    /// Its file may grow after it is opened.
    #[test]
    fn no_more_of_a_kernel_is_copied_than_it_may_have() {
        let copied = |size: u64| {
            let [from, to] = [(); 2].map(|()| tempfile::tempfile().unwrap());
            from.set_len(size).unwrap();
            let done = copy_at_most(&from, &to, 1 << 20);
            (done.is_ok(), to.metadata().unwrap().len())
        };
        assert_eq!(copied(1 << 20), (true, 1 << 20));
        assert_eq!(copied(9 << 20), (false, (1 << 20) + 1));
    }
}
