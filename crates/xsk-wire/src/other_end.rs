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
    let index = link.peer_elsewhere?;
    let mut seen = HashSet::from([Namespace::current().ok()?.inode().ok()?]);
    let mut found = Vec::new();
    for path in namespaces() {
        // A process may have ended meanwhile.
        let Ok(namespace) = Namespace::open(path) else { continue };
        if !namespace.inode().is_ok_and(|inode| seen.insert(inode)) {
            continue;
        }
        let links = Handle::within(&namespace).and_then(|mut handle| handle.links());
        let is_it = |one: &Link| {
            one.index == index && one.kind == link.kind && one.peer_elsewhere == Some(link.index)
        };
        let its = links.unwrap_or_default().into_iter().find(is_it);
        found.extend(its.map(|one| OtherEnd { namespace: Some(namespace), name: one.name }));
    }
    // Two ends of the same indexes cannot be distinguished.
    if found.len() == 1 { found.pop() } else { None }
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
