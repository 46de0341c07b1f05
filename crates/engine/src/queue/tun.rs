//! A tun device: what is written to it, this machine forwards.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use emulator::Packet;
use nix::errno::Errno;
use wire::ETHERNET;

use crate::{Error, header};

/// The device. It goes with the process.
pub(super) struct Tun {
    file: File,
    name: String,
    takes_runs: bool,
}

impl Tun {
    /// Makes one in the calling thread's namespace, and sets it up.
    pub(super) fn make() -> Result<Self, Error> {
        let failed = |source| Error::Tun { source };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .map_err(failed)?;
        let name = name_device(&file).map_err(|errno| failed(errno.into()))?;
        // It is another way out to the machine, not a host: it says nothing of itself, and takes packets
        // from whatever address, unless the machine as a whole does not.
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

    /// Whether the kernel takes datagrams that were made one: since Linux 6.2.
    pub(super) fn takes_runs(&self) -> bool {
        self.takes_runs
    }

    /// Gives a packet to this machine. What it does not take is lost; returns how many it has taken
    /// of those that it is.
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
                // What is no IP packet it refuses; what it has no room for, too.
                Some(Errno::EINVAL | Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM) => Ok(0),
                // Somebody has set the device down.
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

/// Gives the device its name, the first that is free.
fn name_device(file: &File) -> nix::Result<String> {
    // SAFETY: all zeros is a request without anything.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (at, byte) in b"kaido%d".iter().enumerate() {
        request.ifr_name[at] = byte.cast_signed();
    }
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: the request lives until the call returns.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    Errno::result(done)?;
    let bytes = request.ifr_name.iter().map(|byte| byte.cast_unsigned());
    Ok(bytes.take_while(|byte| *byte != 0).map(char::from).collect())
}
