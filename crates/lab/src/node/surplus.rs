//! Interfaces of a router's namespace other than those of its links: a routing daemon may create some.

use std::collections::BTreeSet;
use std::path::Path;

use model::topology::Topology;
use netlink::{Handle, Namespace, delete_link_at};
use nix::net::if_::if_nametoindex;

use crate::life::state::namespace_path;
use crate::node::build::SID_DEVICE;

/// Number of such interfaces that are left to the kernel.
const FEW: usize = 16;
const LOOPBACK: &str = "lo";

/// Deletes such interfaces one by one if a router has many. The kernel deletes those of a namespace
/// all at once, under the lock that all changes of interfaces on the machine wait for (RTNL): 1,000
/// bridges took 18 s, 30,000 nine minutes. Interfaces that cannot be deleted, or whose namespace is
/// mounted in another mount namespace, are left to the kernel.
pub(crate) fn delete(directory: &Path, topology: &Topology) {
    for node in topology.nodes.iter().filter(|node| node.runs_frr()) {
        let own: BTreeSet<&str> = node.interfaces.iter().map(|one| &*one.name).collect();
        let namespace = Namespace::open(namespace_path(directory, &node.name));
        let Ok((names, mut handle)) = namespace
            .and_then(|namespace| Ok((namespace.run(names)?, Handle::within(&namespace)?)))
        else {
            continue;
        };
        let is_surplus = |(name, _): &&(String, u32)| {
            *name != LOOPBACK && *name != SID_DEVICE && !own.contains(&**name)
        };
        let surplus: Vec<u32> = names.iter().filter(is_surplus).map(|(_, index)| *index).collect();
        if surplus.len() > FEW {
            // The last ones first: what is stacked on an interface goes with it, all at once.
            for index in surplus.into_iter().rev() {
                let _ = handle.request("delete an interface", delete_link_at(index));
            }
        }
    }
}

/// Returns the names and indices of the interfaces of the calling thread's namespace. Not by netlink: one
/// interface with many alternative names would not fit into its messages, and end the list. A name may be
/// any bytes but white space, `/` and `:`.
fn names() -> Vec<(String, u32)> {
    let text = std::fs::read("/proc/thread-self/net/dev").unwrap_or_default();
    let interface = |line: &[u8]| {
        let name = line.split(|byte| *byte == b':').next()?.trim_ascii();
        let index = if_nametoindex(name).ok().filter(|index| *index != 0)?;
        Some((String::from_utf8_lossy(name).into_owned(), index))
    };
    text.split(|byte| *byte == b'\n').filter_map(interface).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use netlink::{add_bridge, delete_link};

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
            // Its alternative names exceed a message.
            let names = (0..300).flat_map(|at| ["altname".into(), format!("{at:0>127}")]);
            let mut named = std::process::Command::new("ip");
            named.args(["link", "property", "add", "dev", "x0"]).args(names);
            assert!(namespace.run(|| named.status().unwrap()).unwrap().success());
            delete(root.path(), &topology);
            if count > FEW {
                assert!(
                    namespace
                        .run(super::names)
                        .unwrap()
                        .iter()
                        .all(|(name, _)| !name.starts_with('x'))
                );
            } else {
                handle.request("delete it", delete_link("x0")).unwrap();
            }
            let links = handle.links().unwrap();
            let has = |wanted: &str| links.iter().any(|link| link.name == wanted);
            assert!(has("lo") && has(own) && has(SID_DEVICE));
            let created = links.iter().filter(|link| link.name.starts_with('x')).count();
            assert_eq!(created, if count > FEW { 0 } else { count - 1 });
            namespace.remove().unwrap();
        }
    }
}
