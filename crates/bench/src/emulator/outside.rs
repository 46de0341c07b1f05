//! Two outside hosts, and a machine between them that runs a lab; all three are namespaces.

use std::net::IpAddr;

use anyhow::Result;
use ipnet::IpNet;
use netlink::{Address, Handle, Namespace, NextHop, Route, VethEnd};

/// Attachment of the outside hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Frames: the hosts are on the lab's links.
    Frames,
    /// Netfilter queues: the machine is the hosts' router.
    Queues,
}

/// The hosts and the machine.
pub(super) struct Outside {
    pub(super) machine: Namespace,
    pub(super) a: Namespace,
    pub(super) b: Namespace,
}

/// Address of host B.
pub(super) const B: [u8; 4] = [198, 51, 100, 2];

/// Interface indices of a host, and of the machine's two interfaces.
const HOST: u32 = 10;
const MACHINE: [u32; 2] = [10, 11];

impl Outside {
    /// Creates the namespaces with addresses and routes.
    pub(super) fn new(by: By) -> Result<Self> {
        let new = Namespace::unnamed;
        let outside = Self { machine: new()?, a: new()?, b: new()? };
        let machine = &outside.machine;
        let mut handle = Handle::within(machine)?;
        let sides = [
            (&outside.a, "out1", "192.0.2.1", [192, 0, 2, 2]),
            (&outside.b, "out2", "198.51.100.1", B),
        ];
        for ((host, name, router, own), index) in sides.into_iter().zip(MACHINE) {
            let end = |name, namespace, index| VethEnd {
                name,
                namespace,
                mtu: 1500,
                mac: None,
                index: Some(index),
            };
            let veth = netlink::add_veth(&end(name, machine, index), &end("eth0", host, HOST));
            handle.request("a host's link", veth)?;
            handle.request("a host's link", netlink::set_up(index))?;
            let router: IpAddr = router.parse()?;
            let (own, gateway) = match by {
                // The first node of a link has its first address.
                By::Frames if own != B => (router, IpAddr::from(own)),
                _ => (IpAddr::from(own), router),
            };
            let mut far = Handle::within(host)?;
            far.request("a host's link", netlink::set_up(HOST))?;
            let net = IpNet::new(own, 24)?;
            far.request(
                "a host's address",
                netlink::add_address(Address { interface: HOST, net }),
            )?;
            let everything: IpNet = "0.0.0.0/0".parse()?;
            let hop = NextHop { via: Some(gateway), interface: HOST };
            let route = Route::new(everything, vec![hop]);
            far.request("a host's route", netlink::add_route(&route))?;
            if by == By::Queues {
                let net = IpNet::new(router, 24)?;
                let address = Address { interface: index, net };
                handle.request("the machine's address", netlink::add_address(address))?;
            }
        }
        if by == By::Queues {
            machine.run(|| netlink::sysctl::write("ipv4/ip_forward", "1"))??;
        }
        Ok(outside)
    }

    /// Enables or disables segmentation offload on the hosts.
    pub(super) fn set_segments(&self, many: bool) -> Result<()> {
        [&self.a, &self.b].into_iter().try_for_each(|host| set_segments(host, HOST, many))
    }
}

/// Sets the maximum number of segments per packet of a device.
pub(super) fn set_segments(namespace: &Namespace, device: u32, many: bool) -> Result<()> {
    const MAX_SEGMENTS: u32 = 65_535;
    let most = if many { MAX_SEGMENTS } else { 1 };
    let request = netlink::set_largest_segments(device, most);
    Ok(Handle::within(namespace)?.request("segments", request)?)
}

/// Returns a lab between the two hosts: a chain of virtual routers.
pub(super) fn chain(routers: usize, by: By) -> String {
    let (a, b) = match by {
        By::Frames => (String::new(), String::new()),
        By::Queues => (
            ", via: nfqueue, prefixes: [192.0.2.0/24]".into(),
            ", via: nfqueue, prefixes: [198.51.100.0/24]".to_owned(),
        ),
    };
    let mut text =
        format!("name: chain\nnodes:\n  a: {{attach: out1{a}}}\n  b: {{attach: out2{b}}}\n");
    for n in 1..=routers {
        text += &format!("  x{n}: {{router: virtual}}\n");
    }
    let (first, last) = match by {
        By::Frames => ("  - a-x1: {ipv4: 192.0.2.0/24}\n", ": {ipv4: 198.51.100.0/24}"),
        By::Queues => ("  - a-x1\n", ""),
    };
    text += &format!("links:\n{first}");
    for n in 1..routers {
        text += &format!("  - x{n}-x{}\n", n + 1);
    }
    text + &format!("  - x{routers}-b{last}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_labs() {
        for by in [By::Frames, By::Queues] {
            for routers in [1, 60] {
                let topology = topology_file::parse("chain", &chain(routers, by)).unwrap();
                assert_eq!(topology.nodes.len(), routers + 2);
            }
        }
    }
}
