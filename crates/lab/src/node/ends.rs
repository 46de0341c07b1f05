//! Ends of links whose packets programs judge.
//!
//! ```text
//!   node r1 | r2 ==veth== node-10 | p4 attach | r2 ==veth== the link
//!           |            (namespace .programs-r1)
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use model::topology::{Interface, Node, Topology};
use netlink::{Namespace, sysctl};

use crate::Error;
use crate::life::state::{namespace_path, programs_namespace};
use crate::node::index::interface_index;

/// Interfaces of a host or a router whose packets programs judge, with their positions.
pub(crate) fn judged(node: &Node) -> Vec<(usize, &Interface)> {
    let all = node.interfaces.iter().enumerate();
    all.filter(|(_, interface)| node.is_judged(&interface.name)).collect()
}

/// Name of the end that leads to the node, beside the interface that leads to the link. It cannot
/// collide with a node's: those have no hyphen.
pub(crate) fn users_end(interface: usize) -> String {
    format!("node-{}", interface_index(interface))
}

/// Creates the namespaces of all nodes with programs, by the nodes' indices.
pub(crate) fn namespaces(
    directory: &Path,
    topology: &Topology,
) -> Result<BTreeMap<usize, Namespace>, Error> {
    let nodes = topology.nodes.iter().enumerate();
    let nodes = nodes.filter(|(_, node)| node.has_programs());
    let make = |(at, node): (usize, &Node)| {
        let path = namespace_path(directory, &programs_namespace(&node.name));
        let namespace = Namespace::create(path)?;
        // Packets of the kernel itself would not be judged.
        for which in ["all", "default"] {
            let path = format!("ipv6/conf/{which}/disable_ipv6");
            namespace.run(|| sysctl::write(&path, "1"))??;
        }
        Ok((at, namespace))
    };
    nodes.map(make).collect()
}
