//! Offloads of an interface (SIOCETHTOOL): those that are incompatible with XDP, and the one that
//! lets a veth receive XDP frames.

mod features;

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
    /// Tags of received frames (802.1Q) are moved out of the frame, where XDP does not see them.
    ReceivedTags,
    /// The same for tags of 802.1ad.
    ReceivedServiceTags,
    /// Tags of sent frames (802.1Q) stay out of the frame, for the device. Between two veths, XDP does
    /// not see them.
    SentTags,
    /// The same for tags of 802.1ad.
    SentServiceTags,
}

/// The commands of an offload, or its name.
enum Access {
    /// Commands, and the bit in their argument.
    Commands { read: u32, write: u32, bit: u32 },
    /// Name of the feature.
    Feature(&'static str),
}

impl Offload {
    /// Work on sent frames that a veth leaves to a device. XDP at its other end loses the notes about
    /// it.
    pub const LEFT_TO_DEVICE: [Self; 3] = [Self::TxChecksum, Self::SentTags, Self::SentServiceTags];

    fn access(self) -> Access {
        let commands = |read, write, bit| Access::Commands { read, write, bit };
        match self {
            Self::Gro => commands(ETHTOOL_GGRO, ETHTOOL_SGRO, 1),
            Self::TxChecksum => commands(ETHTOOL_GTXCSUM, ETHTOOL_STXCSUM, 1),
            Self::Lro => commands(ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_LRO),
            Self::ReceivedTags => commands(ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_RXVLAN),
            Self::SentTags => commands(ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_TXVLAN),
            Self::ReceivedServiceTags => Access::Feature("rx-vlan-stag-hw-parse"),
            Self::SentServiceTags => Access::Feature("tx-vlan-stag-hw-insert"),
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

/// Argument of an ethtool command.
///
/// # Safety
///
/// It is C data that begins with the command. The fields that bound the kernel's accesses keep them
/// within it.
unsafe trait Call {}

/// struct ethtool_value
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

// SAFETY: the commands of `Access::Commands` take and return one number.
unsafe impl Call for Value {}

/// Turns an offload on or off for an interface of the calling thread's namespace. Fails if its driver
/// cannot.
pub fn set_offload(interface: &str, offload: Offload, on: bool) -> Result<()> {
    let failed = |errno| Error::io(format!("switch the offload {offload:?} of {interface}"), errno);
    match offload.access() {
        Access::Commands { read, write, bit } => {
            set_bit(interface, read, write, bit, on).map_err(failed)
        }
        Access::Feature(name) => {
            features::set(interface, name, on).map_err(failed)?;
            // The kernel ignores features that the driver does not have.
            match has_offload(interface, offload)? == on {
                true => Ok(()),
                false => Err(failed(Errno::EOPNOTSUPP)),
            }
        }
    }
}

fn set_bit(
    interface: &str,
    read: u32,
    write: u32,
    bit: u32,
    on: bool,
) -> std::result::Result<(), Errno> {
    let others = if bit == 1 { 0 } else { value(interface, read, 0)? & !bit };
    value(interface, write, others | if on { bit } else { 0 }).map(drop)
}

/// Returns true if an offload of an interface of the calling thread's namespace is on.
pub fn has_offload(interface: &str, offload: Offload) -> Result<bool> {
    let read = match offload.access() {
        Access::Commands { read, bit, .. } => value(interface, read, 0).map(|data| data & bit != 0),
        Access::Feature(name) => features::is_on(interface, name),
    };
    read.map_err(|errno| Error::io(format!("read the offload {offload:?} of {interface}"), errno))
}

/// Returns true if an interface moves the VLAN tag of a received frame out of the frame
/// (`rx-vlan-offload`, `rx-vlan-stag-hw-parse`), where XDP does not see it.
pub fn strips_tags(interface: &str) -> Result<bool> {
    let (customer, service) = (Offload::ReceivedTags, Offload::ReceivedServiceTags);
    Ok(has_offload(interface, customer)? || has_offload(interface, service)?)
}

/// Makes an interface leave VLAN tags in received frames. Fails if its driver cannot.
pub fn leave_tags(interface: &str) -> Result<()> {
    let leave = |offload| match has_offload(interface, offload)? {
        true => set_offload(interface, offload, false),
        false => Ok(()),
    };
    // Both of them, whatever becomes of the first.
    [Offload::ReceivedTags, Offload::ReceivedServiceTags].map(leave).into_iter().collect()
}

/// Calls a command whose argument is a number, and returns the number that it writes.
fn value(interface: &str, command: u32, data: u32) -> std::result::Result<u32, Errno> {
    let mut value = Value { command, data };
    call(interface, &mut value)?;
    Ok(value.data)
}

fn call<T: Call>(interface: &str, argument: &mut T) -> std::result::Result<(), Errno> {
    // SAFETY: the call takes three integers, and the returned descriptor has no other owner.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        Errno::result(fd).map(|fd| OwnedFd::from_raw_fd(fd))?
    };
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
    request.ifr_ifru.ifru_data = (&raw mut *argument).cast();
    // SAFETY: the request points to an argument of the type that its command expects, and both live
    // until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    Errno::result(result).map(drop)
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
                (Offload::ReceivedServiceTags, "rx-vlan-stag-hw-parse"),
                (Offload::SentTags, "tx-vlan-offload"),
                (Offload::SentServiceTags, "tx-vlan-stag-hw-insert"),
            ] {
                for (on, shown) in [(true, "on"), (false, "off")] {
                    set_offload("a", offload, on).unwrap();
                    assert_eq!(has_offload("a", offload).unwrap(), on);
                    let features = output("ethtool", "-k a");
                    assert!(features.contains(&format!("{name}: {shown}")), "{features}");
                }
            }
            assert!(set_offload("nowhere", Offload::Gro, true).is_err());
            assert!(set_offload("nowhere", Offload::SentServiceTags, true).is_err());
            assert!(!has_offload("a", Offload::Lro).unwrap());
            // The loopback interface has neither.
            assert!(!has_offload("lo", Offload::SentServiceTags).unwrap());
            assert!(set_offload("lo", Offload::SentServiceTags, true).is_err());
            set_offload("lo", Offload::SentServiceTags, false).unwrap();
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
            let off =
                |text: String, name| text.replace(&format!("{name}: on"), &format!("{name}: off"));
            let expected = off(off(before, "rx-vlan-offload"), "rx-vlan-stag-hw-parse");
            assert_eq!(expected, after);
            assert!(strips_tags("nowhere").is_err() && leave_tags("nowhere").is_err());
            assert!(leave_tags("lo").is_ok(), "it has no such offload");
        });
    }
}
