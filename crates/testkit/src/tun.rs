//! A tap device, whose user is a VM otherwise.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc;
use nix::poll::{PollFd, PollFlags, poll};

/// Time to wait for a frame, in milliseconds.
const TIMEOUT_MS: u16 = 5000;

/// A tap device, which exists as long as this value.
#[derive(Debug)]
pub struct TapDevice(File);

impl TapDevice {
    /// Makes a device in the calling thread's namespace. Any thread can use it later.
    pub fn new(name: &str) -> Self {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open("/dev/net/tun").expect("the kernel has tun");
        // SAFETY: ifreq is plain C data, for which all zeros is a valid value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *place = byte as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as i16;
        // SAFETY: the request lives until the call returns.
        let made = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
        assert_eq!(made, 0, "{name}: {}", std::io::Error::last_os_error());
        Self(file)
    }

    /// Sends a frame, as a VM does.
    pub fn send(&self, frame: &[u8]) {
        (&self.0).write_all(frame).expect("the device is up");
    }

    /// Returns true if this frame is received within a few seconds; others are skipped.
    pub fn receives(&self, wanted: &[u8]) -> bool {
        let mut bytes = vec![0; 10_000];
        loop {
            let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
            if poll(&mut fds, TIMEOUT_MS) != Ok(1) {
                return false;
            }
            let length = (&self.0).read(&mut bytes).expect("there is a frame");
            if bytes[..length] == *wanted {
                return true;
            }
        }
    }
}
