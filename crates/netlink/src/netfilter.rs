//! The generation of nftables' rules.

use netlink_sys::protocols::NETLINK_NETFILTER;

use crate::Result;
use crate::attribute::{after, array, each};
use crate::socket::Socket;

// linux/netfilter/nfnetlink.h, nf_tables.h
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFT_MSG_GETGEN: u16 = 16;
const NFTA_GEN_ID: u16 = 1;
/// struct nfgenmsg: family, version, resource ID
const HEADER: usize = 4;

/// A netfilter socket in one namespace.
#[derive(Debug)]
pub struct NetfilterHandle {
    socket: Socket,
}

impl NetfilterHandle {
    /// A handle on the calling thread's namespace.
    pub fn new() -> Result<Self> {
        Ok(Self { socket: Socket::open(NETLINK_NETFILTER)? })
    }

    /// A number that changes with each change of the namespace's rules. Fails if the kernel has no
    /// nftables, or has not loaded it.
    pub fn generation(&mut self) -> Result<u32> {
        let kind = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN;
        self.socket.get("read the generation of nftables", kind, &[0; HEADER], |answer| {
            for attribute in each(after(answer, HEADER)?) {
                let attribute = attribute?;
                if attribute.kind() == NFTA_GEN_ID {
                    return array(attribute.value(), 0).map(u32::from_be_bytes);
                }
            }
            Err("no number in it".into())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::testing::in_namespace;

    #[test]
    fn root_the_generation_changes_with_the_rules_of_the_namespace() {
        in_namespace(|| {
            let nft = |order: &str| {
                assert!(Command::new("nft").arg(order).status().unwrap().success());
            };
            nft("add table inet a");
            let mut handle = NetfilterHandle::new().unwrap();
            let before = handle.generation().unwrap();
            assert_eq!(handle.generation().unwrap(), before);
            nft("delete table inet a");
            assert_ne!(handle.generation().unwrap(), before);
        });
    }
}
