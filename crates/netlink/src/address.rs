//! Interface addresses.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::DecodeError;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};

use crate::attribute::{after, array, each, u32_at};
use crate::route::address as ip;
use crate::socket::{CREATE, EXCL, bytes};
use crate::{Handle, Request, Result};

/// An address of an interface, with the length of its on-link prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The interface's index.
    pub interface: u32,
    /// Address and prefix length.
    pub net: IpNet,
}

/// Adds an address. IPv6 addresses skip duplicate address detection and are usable immediately.
pub fn add_address(address: Address) -> Request {
    Request::encode(libc::RTM_NEWADDR, CREATE | EXCL, &message(address))
}

/// Removes an address.
pub fn delete_address(address: Address) -> Request {
    Request::encode(libc::RTM_DELADDR, 0, &message(address))
}

fn message(address: Address) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.index = address.interface;
    message.header.prefix_len = address.net.prefix_len();
    let local = address.net.addr();
    message.attributes = vec![AddressAttribute::Local(local), AddressAttribute::Address(local)];
    match address.net {
        IpNet::V4(net) => {
            message.header.family = AddressFamily::Inet;
            if net.prefix_len() < 31 {
                message.attributes.push(AddressAttribute::Broadcast(net.broadcast()));
            }
        }
        IpNet::V6(_) => {
            message.header.family = AddressFamily::Inet6;
            message.header.flags = AddressHeaderFlags::Nodad;
        }
    }
    message
}

impl Handle {
    /// All addresses of all interfaces, including IPv6 link-local addresses.
    pub fn addresses(&mut self) -> Result<Vec<Address>> {
        let body = bytes(&AddressMessage::default());
        self.socket.dump("list the addresses", libc::RTM_GETADDR, &body, address)
    }
}

// linux/if_addr.h
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// struct ifaddrmsg
const HEADER: usize = 8;

/// Parses struct ifaddrmsg. netlink-packet-route rejects labels that are not UTF-8.
fn address(body: &[u8]) -> Result<Option<Address>, DecodeError> {
    let [family, prefix_len] = array(body, 0)?;
    if !matches!(i32::from(family), libc::AF_INET | libc::AF_INET6) {
        return Ok(None);
    }
    let mut found: Option<IpAddr> = None;
    for attribute in each(after(body, HEADER)?) {
        let attribute = attribute?;
        match attribute.kind() {
            // On a point-to-point interface IFA_ADDRESS is the peer's address. IFA_LOCAL is always
            // our own, but IPv6 may omit it.
            IFA_LOCAL => found = Some(ip(attribute.value())?),
            IFA_ADDRESS if found.is_none() => found = Some(ip(attribute.value())?),
            _ => {}
        }
    }
    let interface = u32_at(body, 4)?;
    let net = found.and_then(|found| IpNet::new(found, prefix_len).ok());
    Ok(net.map(|net| Address { interface, net }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{in_namespace, output};

    #[test]
    fn root_addresses_are_read_back() {
        in_namespace(|| {
            let mut handle = Handle::new().unwrap();
            let wanted: Vec<_> = ["10.1.2.3/24", "10.9.9.9/32", "fd00::1/64", "fd00:9::1/128"]
                .map(|net| Address { interface: 1, net: net.parse().unwrap() })
                .into();
            for address in &wanted {
                handle.request("address", add_address(*address)).unwrap();
            }
            let found = handle.addresses().unwrap();
            for address in &wanted {
                assert!(found.contains(address), "{address:?} in {found:?}");
            }
            assert!(output("ip", "-o addr show dev lo").contains("10.1.2.3/24 brd 10.1.2.255"));
            assert!(handle.request("again", add_address(wanted[0])).unwrap_err().is_exists());
            handle.request("delete", delete_address(wanted[2])).unwrap();
            assert!(!handle.addresses().unwrap().contains(&wanted[2]));
            let error = handle.request("delete", delete_address(wanted[2])).unwrap_err();
            assert!(error.is_not_found(), "{error}");
        });
    }
}
