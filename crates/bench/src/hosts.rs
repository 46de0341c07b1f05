//! Two hosts and the namespace of a switch between them.

use std::net::Ipv4Addr;

use anyhow::{Context as _, Result};
use netlink::{Address, Batch, Handle, Namespace, Offload, VethEnd};

/// Names of the switch's ports.
pub(crate) const PORTS: [&str; 2] = ["p1", "p2"];

/// Name of a host's interface.
const HOST: &str = "eth0";

/// Hosts, each connected to a port of the switch's namespace.
pub(crate) struct Hosts {
    pub(crate) client: Namespace,
    pub(crate) server: Namespace,
    pub(crate) switch: Namespace,
}

impl Hosts {
    /// Address of the server.
    pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    pub(crate) fn new() -> Result<Self> {
        let new = || Namespace::unnamed().context("namespaces need root");
        let hosts = Self { client: new()?, server: new()?, switch: new()? };
        let mut handle = Handle::new()?;
        let both = [(&hosts.client, 1), (&hosts.server, 2)];
        for (port, (host, number)) in PORTS.into_iter().zip(both) {
            let end =
                |name, namespace| VethEnd { name, namespace, mtu: 1500, mac: None, index: None };
            let mut batch = Batch::new();
            batch.push(port, netlink::add_veth(&end(port, &hosts.switch), &end(HOST, host)));
            handle.commit(batch)?;
            let net = ipnet::IpNet::new(Ipv4Addr::new(10, 0, 0, number).into(), 24)?;
            let interface = host.run(|| nix::net::if_::if_nametoindex(HOST))??;
            let mut within = Handle::within(host)?;
            within.request("an address", netlink::add_address(Address { interface, net }))?;
            within.request("a host's link", netlink::set_up(interface))?;
            // An AF_XDP socket forwards a frame as it is, without the kernel's mark that the
            // receiver completes its checksum.
            host.run(|| netlink::set_offload(HOST, Offload::TxChecksum, false))??;
            let interface = hosts.switch.run(|| nix::net::if_::if_nametoindex(port))??;
            Handle::within(&hosts.switch)?.request("a port", netlink::set_up(interface))?;
        }
        Ok(hosts)
    }
}
