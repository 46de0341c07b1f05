//! The other end of a veth in another namespace, such as a container's interface.

use std::collections::HashSet;
use std::path::PathBuf;

use netlink::{Handle, Link, Namespace};

/// Directory of the namespaces of ip-netns(8).
const NAMED: &str = "/run/netns";

/// The other end of a pair.
pub(crate) struct OtherEnd {
    /// Namespace; the calling thread's own if absent.
    pub(crate) namespace: Option<Namespace>,
    /// Name.
    pub(crate) name: String,
}

/// Returns the other end of a veth. A namespace is found if a process runs in it, or if ip-netns(8)
/// has a name for it.
pub(crate) fn find(handle: &mut Handle, link: &Link) -> Option<OtherEnd> {
    if let Some(index) = link.peer {
        let other = handle.links().ok()?.into_iter().find(|one| one.index == index)?;
        return Some(OtherEnd { namespace: None, name: other.name });
    }
    let (index, id) = (link.peer_elsewhere?, link.peer_namespace?);
    let mut seen = HashSet::from([Namespace::current().ok()?.inode().ok()?]);
    for path in namespaces() {
        // A process may have ended meanwhile.
        let Ok(namespace) = Namespace::open(path) else { continue };
        if !namespace.inode().is_ok_and(|inode| seen.insert(inode))
            || handle.namespace_id(&namespace).ok()? != Some(id)
        {
            continue;
        }
        let other = Handle::within(&namespace).ok()?.link_at(index).ok()?;
        return Some(OtherEnd { namespace: Some(namespace), name: other.name });
    }
    None
}

/// Paths of all namespaces that can be found, with repetitions.
fn namespaces() -> Vec<PathBuf> {
    let entries = |directory: &str| std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries(NAMED).map(|entry| entry.path()).collect();
    let is_process =
        |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let processes = entries("/proc").filter(|entry| is_process(&entry.file_name()));
    all.extend(processes.map(|entry| entry.path().join("ns/net")));
    all
}
