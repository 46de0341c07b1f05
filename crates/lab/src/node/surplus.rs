//! Interfaces of a router's namespace other than those of its links: a routing daemon may create some.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use model::topology::Topology;
use netlink::{Handle, LOOPBACK, Namespace, delete_link_at};

use crate::life::state::namespace_path;
use crate::node::build::SID_DEVICE;

/// Number of such interfaces that are left to the kernel.
const FEW: usize = 16;
/// Maximum number of interfaces on top of each other (the kernel's MAX_NEST_DEV and the lowest one).
const DEEPEST: usize = 9;

/// Deletes such interfaces one by one if a router has many. The kernel deletes those of a namespace
/// all at once, under the lock that all changes of interfaces on the machine wait for (RTNL): 1,000
/// bridges took 18 s, 30,000 nine minutes. Interfaces that cannot be deleted, or whose namespace is
/// mounted in another mount namespace, are left to the kernel.
pub(crate) fn delete(directory: &Path, topology: &Topology) {
    for node in topology.nodes.iter().filter(|node| node.runs_frr()) {
        let namespace = Namespace::open(namespace_path(directory, &node.name));
        let Ok(mut handle) = namespace.and_then(|namespace| Handle::within(&namespace)) else {
            continue;
        };
        let own = node.interfaces.iter().map(|one| one.name.as_str()).chain([SID_DEVICE]);
        let own: BTreeSet<u32> =
            own.filter_map(|name| Some(handle.link(name).ok()?.index)).chain([LOOPBACK]).collect();
        let mut surplus = handle.indices().unwrap_or_default();
        surplus.retain(|index| !own.contains(index));
        if surplus.len() > FEW {
            // Upper interfaces first: the kernel deletes them with the lower one, all at once.
            let lower: HashMap<u32, u32> = handle
                .links()
                .unwrap_or_default()
                .iter()
                .filter_map(|link| Some((link.index, link.lower?)))
                .collect();
            let depth = |index: &u32| {
                std::iter::successors(Some(*index), |above| lower.get(above).copied())
                    .take(DEEPEST)
                    .count()
            };
            surplus.sort_by_cached_key(|index| Reverse(depth(index)));
            for index in surplus {
                let _ = handle.request("delete an interface", delete_link_at(index));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use netlink::add_bridge;

    use super::*;
    use crate::life::state::namespaces_directory;

    #[test]
    fn root_many_interfaces_of_a_routing_daemon_are_deleted_one_by_one() {
        let text = "name: a\nrouting: [ospf]\nnodes: {r1: {router: frr}, r2: {router: frr}}\nlinks: [r1-r2]\n";
        let topology = topology_file::parse("a.yaml", text).unwrap();
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(namespaces_directory(root.path())).unwrap();
        for (node, own, count) in [("r1", "r2", FEW + 1), ("r2", "r1", FEW)] {
            let namespace = Namespace::create(namespace_path(root.path(), node)).unwrap();
            let mut handle = Handle::within(&namespace).unwrap();
            let names = (0..count).map(|number| format!("x{number}"));
            for name in names.chain([own.to_owned(), SID_DEVICE.to_owned()]) {
                handle.request("make a bridge", add_bridge(&name, None)).unwrap();
            }
            if count > FEW {
                let mut odd = std::process::Command::new("ip");
                odd.args(["link", "add"]).arg(OsStr::from_bytes(b"\xff")).args(["type", "bridge"]);
                assert!(namespace.run(|| odd.status().unwrap()).unwrap().success());
            }
            namespace.run(|| testkit::alternative_names("x0", 0..496)).unwrap();
            delete(root.path(), &topology);
            let links = handle.links().unwrap();
            let has = |wanted: &str| links.iter().any(|link| link.name == wanted);
            assert!(has("lo") && has(own) && has(SID_DEVICE));
            let created = links.iter().filter(|link| link.name.starts_with('x')).count();
            assert_eq!(created, if count > FEW { 0 } else { count });
            namespace.remove().unwrap();
        }
    }
}
