//! Next hops to resolve.

use std::net::IpAddr;

use crate::Srv6;
use crate::skeleton::types;

impl Srv6 {
    /// Returns the next hops that packets failed to resolve since the last call, with their
    /// interfaces.
    pub fn take_unresolved(&self) -> Vec<(u32, IpAddr)> {
        let mut found = Vec::new();
        for at in 0..self.unresolved.len() {
            let types::unresolved { address, ifindex, ipv6 } = self.unresolved.read(at);
            if ifindex == 0 {
                continue;
            }
            // If the program writes the entry at the same time, the next packet writes it again.
            self.unresolved.write(at, types::unresolved::default());
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&address[0].to_ne_bytes());
            bytes[8..].copy_from_slice(&address[1].to_ne_bytes());
            let [a, b, c, d, ..] = bytes;
            let address = if ipv6 == 0 { IpAddr::from([a, b, c, d]) } else { IpAddr::from(bytes) };
            found.push((ifindex, address));
        }
        found
    }
}
