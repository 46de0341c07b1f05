//! Offloads of an interface (SIOCETHTOOL): those that are incompatible with XDP, and the one that
//! lets a veth receive XDP frames.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;

use crate::{Error, Result};

/// An offload that can be switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// Generic receive offload. It turns on NAPI polling in a veth, and only a polling veth accepts
    /// frames that XDP sends to its peer.
    Gro,
    /// Checksum offload for transmitted packets. A packet between two veths carries only a partial
    /// checksum, and the mark for it is lost when XDP redirects the frame.
    TxChecksum,
    /// Large receive offload: the device joins received packets.
    Lro,
    /// VLAN tags of received frames are moved out of the frame, where XDP does not see them.
    ReceivedTags,
    /// VLAN tags of sent frames stay out of the frame, for the device. Between two veths, XDP does not
    /// see them.
    SentTags,
}

impl Offload {
    /// Commands that read and write it, and its bit.
    fn commands(self) -> (u32, u32, u32) {
        match self {
            Self::Gro => (ETHTOOL_GGRO, ETHTOOL_SGRO, 1),
            Self::TxChecksum => (ETHTOOL_GTXCSUM, ETHTOOL_STXCSUM, 1),
            Self::Lro => (ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_LRO),
            Self::ReceivedTags => (ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_RXVLAN),
            Self::SentTags => (ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_TXVLAN),
        }
    }
}

// linux/ethtool.h
const ETHTOOL_GTXCSUM: u32 = 0x16;
const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_SGRO: u32 = 0x2c;
const ETH_FLAG_TXVLAN: u32 = 1 << 7;
const ETH_FLAG_RXVLAN: u32 = 1 << 8;
const ETH_FLAG_LRO: u32 = 1 << 15;
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// struct ethtool_value
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Turns an offload on or off for an interface of the calling thread's namespace. Fails if its driver
/// cannot.
pub fn set_offload(interface: &str, offload: Offload, on: bool) -> Result<()> {
    let (read, write, bit) = offload.commands();
    let failed = |errno| Error::io(format!("switch the offload {offload:?} of {interface}"), errno);
    let others = if bit == 1 { Ok(0) } else { call(interface, read, 0) }.map_err(failed)? & !bit;
    let value = others | if on { bit } else { 0 };
    call(interface, write, value).map(drop).map_err(failed)
}

/// Returns true if an offload of an interface of the calling thread's namespace is on.
pub fn has_offload(interface: &str, offload: Offload) -> Result<bool> {
    let (read, _, bit) = offload.commands();
    let failed = |errno| Error::io(format!("read the offload {offload:?} of {interface}"), errno);
    Ok(call(interface, read, 0).map_err(failed)? & bit != 0)
}

/// Returns true if an interface moves the VLAN tag of a received frame out of the frame
/// (`rx-vlan-offload`), where XDP does not see it.
pub fn strips_tags(interface: &str) -> Result<bool> {
    has_offload(interface, Offload::ReceivedTags)
}

/// Makes an interface leave VLAN tags in received frames. Fails if its driver cannot.
pub fn leave_tags(interface: &str) -> Result<()> {
    set_offload(interface, Offload::ReceivedTags, false)
}

/// Runs a command whose argument is a number, and returns the number that it writes.
fn call(interface: &str, command: u32, data: u32) -> std::result::Result<u32, Errno> {
    // SAFETY: the call takes three integers, and the returned descriptor has no other owner.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        Errno::result(fd).map(|fd| OwnedFd::from_raw_fd(fd))?
    };
    let mut value = Value { command, data };
    // SAFETY: ifreq is plain C data, for which all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // Keep the last byte as the terminating 0.
    let room = request.ifr_name.len() - 1;
    if interface.len() > room {
        return Err(Errno::ENODEV);
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request points to a value of the type that the command expects, and both live
    // until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    Errno::result(result).map(|_| value.data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Handle;
    use crate::testing::{in_namespace, output, veth};

    #[test]
    fn root_offloads_are_switched() {
        in_namespace(|| {
            veth(&mut Handle::new().unwrap());
            for (offload, name) in [
                (Offload::Gro, "generic-receive-offload"),
                (Offload::TxChecksum, "tx-checksumming"),
                (Offload::ReceivedTags, "rx-vlan-offload"),
                (Offload::SentTags, "tx-vlan-offload"),
            ] {
                for (on, shown) in [(true, "on"), (false, "off")] {
                    set_offload("a", offload, on).unwrap();
                    assert_eq!(has_offload("a", offload).unwrap(), on);
                    let features = output("ethtool", "-k a");
                    assert!(features.contains(&format!("{name}: {shown}")), "{features}");
                }
            }
            assert!(set_offload("nowhere", Offload::Gro, true).is_err());
            assert!(!has_offload("a", Offload::Lro).unwrap());
        });
    }

    #[test]
    fn root_tags_are_left_in_frames() {
        in_namespace(|| {
            veth(&mut Handle::new().unwrap());
            assert!(strips_tags("a").unwrap(), "the default of veth");
            let before = output("ethtool", "-k a");
            leave_tags("a").unwrap();
            assert!(!strips_tags("a").unwrap());
            let after = output("ethtool", "-k a");
            assert_eq!(before.replace("rx-vlan-offload: on", "rx-vlan-offload: off"), after);
            assert!(strips_tags("nowhere").is_err() && leave_tags("nowhere").is_err());
            assert!(leave_tags("lo").is_ok(), "it has no such offload");
        });
    }
}
