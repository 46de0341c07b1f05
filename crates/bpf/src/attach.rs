//! XDP attachment to an interface, kept by a pin: it outlives the process, and the next process
//! replaces the program in one step.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::libbpf::{check, fd};
use crate::pin::{pin, pinned};

/// Location of the program in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// In the driver if it supports that, otherwise as `Generic`.
    #[default]
    Auto,
    /// In the driver, before the kernel allocates an skb.
    Native,
    /// After the driver; supported by any driver, but slower.
    Generic,
}

// linux/if_link.h
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// A program attached to an interface.
#[derive(Debug)]
pub struct Attached {
    link: OwnedFd,
    interface: u32,
    pin: Option<PathBuf>,
}

impl Attached {
    /// Attaches `program` to an interface of the caller's namespace. It is detached when the value
    /// is dropped, unless it is pinned.
    pub fn new(program: BorrowedFd<'_>, interface: u32, mode: Mode) -> Result<Self, Error> {
        let create = |flags: u32| {
            // SAFETY: bpf_link_create_opts is plain C data, and all zeros is its default.
            let mut opts: libbpf_sys::bpf_link_create_opts = unsafe { std::mem::zeroed() };
            opts.sz = size_of_val(&opts) as _;
            opts.flags = flags;
            // SAFETY: the options live until the call returns.
            fd(unsafe {
                libbpf_sys::bpf_link_create(
                    program.as_raw_fd(),
                    interface as i32,
                    libbpf_sys::BPF_XDP,
                    &raw const opts,
                )
            })
        };
        let made = match mode {
            Mode::Native => create(XDP_FLAGS_DRV_MODE),
            Mode::Generic => create(XDP_FLAGS_SKB_MODE),
            Mode::Auto => create(XDP_FLAGS_DRV_MODE).or_else(|error| {
                // If another program is attached, generic mode would only hide the conflict.
                if is_busy(&error) { Err(error) } else { create(XDP_FLAGS_SKB_MODE) }
            }),
        };
        match made {
            Ok(link) => Ok(Self { link, interface, pin: None }),
            Err(source) if is_busy(&source) => Err(Error::Occupied { interface }),
            Err(source) if mode == Mode::Native => Err(Error::NotNative { interface, source }),
            Err(source) => Err(Error::AttachXdp { interface, source }),
        }
    }

    /// Opens the attachment pinned at `path`.
    pub fn pinned(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Pin { path: path.into(), source };
        let link = pinned(path).map_err(failed)?;
        let (interface, _) = info(link.as_fd()).map_err(failed)?;
        Ok(Self { link, interface, pin: Some(path.into()) })
    }

    /// Moves the pin to `path`.
    pub fn move_pin(&mut self, path: &Path) -> Result<(), Error> {
        match &mut self.pin {
            Some(pin) if pin != path => {
                let failed = |source| Error::Pin { path: path.into(), source };
                std::fs::rename(&pin, path).map_err(failed)?;
                *pin = path.into();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the interface, 0 if it is gone.
    pub fn interface(&self) -> u32 {
        self.interface
    }

    /// Returns true if the program is still on its interface, and not on a deleted one whose index was reused.
    /// `programs`: the IDs of those on the interface that has the index now.
    pub fn is_on(&self, programs: impl IntoIterator<Item = u32>) -> bool {
        info(self.link.as_fd()).is_ok_and(|(interface, program)| {
            interface == self.interface && programs.into_iter().any(|other| other == program)
        })
    }

    /// Replaces the attached program. Each packet is processed by one or the other.
    pub fn replace(&self, program: BorrowedFd<'_>) -> Result<(), Error> {
        let interface = self.interface;
        match replace(self.link.as_fd(), program) {
            // The interface is gone, and its packets with it.
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOLINK) => Ok(()),
            done => done.map_err(|source| Error::AttachXdp { interface, source }),
        }
    }

    /// Keeps the program attached after this process exits, until the pin is removed.
    pub fn pin(&mut self, path: &Path) -> Result<(), Error> {
        pin(self.link.as_fd(), path)?;
        self.pin = Some(path.into());
        Ok(())
    }

    /// Detaches the program from the interface.
    pub fn detach(self) -> Result<(), Error> {
        match &self.pin {
            Some(path) => std::fs::remove_file(path)
                .map_err(|source| Error::Pin { path: path.clone(), source }),
            None => Ok(()),
        }
    }
}

/// Returns the interface of an XDP link, 0 if it is gone, and the ID of the program.
fn info(link: BorrowedFd<'_>) -> io::Result<(u32, u32)> {
    // SAFETY: bpf_link_info is plain C data for which all zeros is a value.
    let mut info: libbpf_sys::bpf_link_info = unsafe { std::mem::zeroed() };
    let mut size = size_of_val(&info) as u32;
    // SAFETY: both pointers are to values that live until the call returns.
    check(unsafe {
        libbpf_sys::bpf_link_get_info_by_fd(link.as_raw_fd(), &raw mut info, &raw mut size)
    })?;
    if info.type_ != libbpf_sys::BPF_LINK_TYPE_XDP {
        return Err(io::Error::other("it is not an attachment of XDP"));
    }
    // SAFETY: the kernel filled in the variant of an XDP link.
    Ok((unsafe { info.__bindgen_anon_1.xdp.ifindex }, info.prog_id))
}

/// Replaces the program of a link.
pub(crate) fn replace(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let (link, program) = (link.as_raw_fd(), program.as_raw_fd());
    // SAFETY: no options; the call takes two descriptors.
    check(unsafe { libbpf_sys::bpf_link_update(link, program, std::ptr::null()) })
}

/// Attaches an XDP program to the driver of an interface that the data plane owns, replacing an
/// attached one. It remains until the interface is deleted.
pub(crate) fn put(program: BorrowedFd<'_>, interface: u32) -> Result<(), Error> {
    // SAFETY: no options; the call takes numbers.
    let result = unsafe {
        libbpf_sys::bpf_xdp_attach(
            interface as i32,
            program.as_raw_fd(),
            XDP_FLAGS_DRV_MODE,
            std::ptr::null(),
        )
    };
    check(result).map_err(|source| Error::AttachXdp { interface, source })
}

fn is_busy(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(nix::libc::EBUSY | nix::libc::EEXIST))
}
