//! The table of permitted source prefixes.

use std::collections::BTreeSet;

use bpf::Srv6;
use bpf::srv6::types;
use ipnet::IpNet;

use crate::Error;
use crate::forwarding::{Forwarding, TenantId};

/// Flag in a tenant number: the prefix is an IPv6 prefix (OWNER_IPV6).
const IPV6: u32 = 1 << 31;
/// Length of the owner, which precedes the address in a key.
const OWNER_BITS: u32 = 32;

/// Contents of the program's table.
#[derive(Debug, Default)]
pub(super) struct Sources(BTreeSet<(Option<TenantId>, IpNet)>);

impl Sources {
    /// Adds the entries of `wanted` that the table lacks.
    pub(super) fn extend(&mut self, srv6: &Srv6, wanted: &Forwarding) -> Result<(), Error> {
        for source in wanted.sources.difference(&self.0.clone()) {
            srv6.sources.set(&key(source), &1)?;
            self.0.insert(*source);
        }
        Ok(())
    }

    /// Removes the entries that are not in `wanted`.
    pub(super) fn shrink(&mut self, srv6: &Srv6, wanted: &Forwarding) -> Result<(), Error> {
        for source in self.0.clone().difference(&wanted.sources) {
            srv6.sources.remove(&key(source))?;
            self.0.remove(source);
        }
        Ok(())
    }
}

fn key((tenant, net): &(Option<TenantId>, IpNet)) -> types::source {
    // 0: sources of packets to SIDs.
    let owner = tenant.unwrap_or(0);
    let mut bytes = [0; 16];
    let owner = match net {
        IpNet::V4(net) => {
            bytes[..4].copy_from_slice(&net.network().octets());
            owner
        }
        IpNet::V6(net) => {
            bytes = net.network().octets();
            owner | IPV6
        }
    };
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_ne_bytes(word)
    };
    let length = OWNER_BITS + u32::from(net.prefix_len());
    types::source { length, owner, address: [word(0), word(8)] }
}
