//! A tun device: this machine forwards the packets written to it.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use emulator::Packet;
use nix::errno::Errno;
use wire::ETHERNET;

use crate::{Error, header};

/// The device, which disappears with the process.
pub(super) struct Tun {
    file: File,
    name: String,
    takes_runs: bool,
}

impl Tun {
    /// Creates a device in the calling thread's namespace and sets it up.
    pub(super) fn make() -> Result<Self, Error> {
        let failed = |source| Error::Tun { source };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .map_err(failed)?;
        let name = name_device(&file).map_err(|errno| failed(errno.into()))?;
        // The device is a path to this machine and not a host: it must not announce itself, and
        // accepts packets from any source address unless the machine-wide setting forbids it.
        let up = |name: &str| {
            netlink::sysctl::write(&format!("ipv6/conf/{name}/addr_gen_mode"), "1")?;
            netlink::sysctl::write(&format!("ipv4/conf/{name}/rp_filter"), "0")?;
            let mut handle = netlink::Handle::new()?;
            let index = handle.link(name)?.index;
            handle.request(format!("device {name}"), netlink::set_up(index))
        };
        up(&name).map_err(|error| failed(io::Error::other(error)))?;
        Ok(Self { file, name, takes_runs: true })
    }

    /// Returns true if the kernel accepts batched datagrams, as Linux 6.2 and later do.
    pub(super) fn takes_runs(&self) -> bool {
        self.takes_runs
    }

    /// Sends a packet to this machine. Returns the number of packets accepted; the others are lost.
    pub(super) fn send(&mut self, packet: &Packet) -> Result<u64, Error> {
        let header = header::behind(packet, ETHERNET);
        let ip = packet.bytes().get(ETHERNET..).unwrap_or_default();
        if packet.count() > 1 && !self.takes_runs {
            return self.send_each(packet);
        }
        let written = (&self.file).write_vectored(&[IoSlice::new(&header), IoSlice::new(ip)]);
        match written {
            Ok(_) => Ok(packet.count().into()),
            Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EINVAL) if packet.count() > 1 => {
                    self.takes_runs = false;
                    self.send_each(packet)
                }
                // Not an IP packet, or no memory.
                Some(Errno::EINVAL | Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM) => Ok(0),
                // The device has been set down.
                Some(Errno::EIO) => Ok(0),
                _ => Err(Error::Device { name: self.name.clone(), source: error }),
            },
        }
    }

    #[cold]
    fn send_each(&mut self, packet: &Packet) -> Result<u64, Error> {
        let mut each = Vec::new();
        packet.clone().split(|one| each.push(one));
        each.iter().map(|one| self.send(one)).sum()
    }
}

/// Requests the first free device name.
fn name_device(file: &File) -> nix::Result<String> {
    // SAFETY: an all-zero ifreq is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (at, byte) in b"kaido%d".iter().enumerate() {
        request.ifr_name[at] = byte.cast_signed();
    }
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: the request outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    Errno::result(done)?;
    let bytes = request.ifr_name.iter().map(|byte| byte.cast_unsigned());
    Ok(bytes.take_while(|byte| *byte != 0).map(char::from).collect())
}
