//! Interfaces of this machine that are in a lab: what is checked before, and what is done to the machine.

mod queues;

use std::collections::BTreeMap;
use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use ipnet::IpNet;
use model::topology::{Attachment, Means, Node, Topology};
use netlink::{Handle, MAIN_TABLE};

use crate::Error;
use crate::state::{INFRASTRUCTURE, Labs, namespace_path};

pub(crate) use queues::{close, open};

/// The first netfilter queue of each interface that has some.
pub(crate) type Queues = BTreeMap<String, u16>;

fn attachments(topology: &Topology) -> impl Iterator<Item = (&Node, &Attachment)> {
    topology.nodes.iter().filter_map(|node| Some((node, node.attachment.as_ref()?)))
}

/// Refuses what this machine cannot attach. `agreed`: that the machine's only way out may be one.
pub(crate) fn check(topology: &Topology, labs: &Labs, agreed: bool) -> Result<(), Error> {
    if attachments(topology).next().is_none() {
        return Ok(());
    }
    let mut handle = Handle::new()?;
    let links = handle.links()?;
    let default = |route: &netlink::Route| route.destination.prefix_len() == 0;
    let routes = handle.routes(Some(MAIN_TABLE), None)?;
    let ways_out: Vec<u32> = routes
        .iter()
        .filter(|route| default(route))
        .flat_map(|route| route.next_hops.iter().map(|hop| hop.interface))
        .collect();
    for (node, attachment) in attachments(topology) {
        let interface = attachment.interface.clone();
        let Some(link) = links.iter().find(|link| link.name == interface) else {
            let known = links.iter().map(|link| link.name.clone());
            let known = known.filter(|name| name != "lo").collect();
            return Err(Error::NotThere { node: node.name.clone(), interface, known });
        };
        if !link.up {
            return Err(Error::AttachedDown(interface));
        }
        let address = SocketAddr::from_abstract_name(Attachment::lock_name(link.index));
        if address.and_then(|address| UnixListener::bind_addr(&address)).is_err() {
            return Err(Error::InAnotherLab { lab: labs.that_attach(&interface), interface });
        }
        let is_only_way =
            ways_out.contains(&link.index) && ways_out.iter().all(|&way| way == link.index);
        match &attachment.means {
            Means::Frames if is_only_way && !agreed => return Err(Error::OnlyWayOut(interface)),
            Means::Frames => {}
            Means::Queue { prefixes, .. } => check_forwarding(prefixes)?,
        }
    }
    queues::check(topology)
}

/// Whether this machine forwards what comes out of the network.
fn check_forwarding(prefixes: &[IpNet]) -> Result<(), Error> {
    let is = |setting: &str, value: &str| netlink::sysctl::read(setting).is_ok_and(|s| s == value);
    for (family, setting) in [("IPv4", "ipv4/ip_forward"), ("IPv6", "ipv6/conf/all/forwarding")] {
        let needed = prefixes.iter().any(|prefix| prefix.addr().is_ipv6() == (family == "IPv6"));
        if needed && is(setting, "0") {
            return Err(Error::NoForwarding { family, setting: setting.replace('/', ".") });
        }
    }
    if is("ipv4/conf/all/rp_filter", "1") {
        return Err(Error::StrictReversePath);
    }
    Ok(())
}

impl Labs {
    /// The lab that has attached an interface, if one is found.
    fn that_attach(&self, interface: &str) -> Option<String> {
        let names = self.names().unwrap_or_default();
        let attaches = |name: &String| {
            let text = fs::read_to_string(self.folder(name).join("lab.yaml")).unwrap_or_default();
            let runs = namespace_path(&self.folder(name), INFRASTRUCTURE).exists();
            runs && model::topology::parse(name, &text)
                .is_ok_and(|topology| attachments(&topology).any(|(_, a)| a.interface == interface))
        };
        names.into_iter().find(attaches)
    }
}

/// Queues of this machine that are free, for each interface that needs some.
pub(crate) fn queues(topology: &Topology, labs: &Labs) -> Queues {
    queues::choose(topology, labs.root())
}

/// Takes away again what a lab has done to this machine.
pub(crate) fn release(folder: &Path) -> Result<(), Error> {
    let Ok(text) = fs::read(crate::emulated::config(folder)) else { return Ok(()) };
    // One that is half-written was written before anything was done.
    let Ok(config) = serde_json::from_slice::<crate::emulated::EmulatorConfig>(&text) else {
        return Ok(());
    };
    close(&config.queues)
}
