//! The peer of an interface: a veth whose inner end only this process reaches.

use netlink::{
    Handle, Link, Namespace, Offload, VethEnd, add_veth_with_queues, delete_link_at, set_down,
    set_offload, set_up, sysctl,
};

use crate::error::Error;

/// Name of the inner end, in a namespace of its own.
const INNER: &str = "inner";

/// The peer, deleted on drop.
pub(crate) struct Peer {
    /// Name at its creation.
    pub(crate) name: String,
    /// Index of the end that users have.
    pub(crate) outer: u32,
    /// Index of the inner end, and its namespace.
    pub(crate) inner: u32,
    pub(crate) namespace: Namespace,
}

impl Peer {
    /// Makes a peer of the interface `link`. It is down.
    pub(crate) fn new(
        handle: &mut Handle,
        name: &str,
        link: &Link,
        queues: u32,
    ) -> Result<Self, Error> {
        let exists = || Error::PeerExists { peer: name.to_owned() };
        match handle.link(name) {
            Ok(_) => return Err(exists()),
            Err(why) if why.is_not_found() => {}
            Err(why) => return Err(why.into()),
        }
        let namespace = Namespace::unnamed()?;
        // The kernel would send packets of its own by the inner end.
        namespace.run(|| sysctl::write("ipv6/conf/default/disable_ipv6", "1"))?.ok();
        let here = Namespace::current()?;
        let end =
            |name, namespace, mac| VethEnd { name, namespace, mtu: link.mtu, mac, index: None };
        let (outer, inner) = (end(name, &here, link.mac), end(INNER, &namespace, None));
        let request = add_veth_with_queues(&outer, &inner, queues);
        match handle.request(format!("make {name}"), request) {
            Err(why) if why.is_exists() => return Err(exists()),
            made => made?,
        }
        let mut inside = Handle::within(&namespace)?;
        let (outer, inner) = (handle.link(name)?.index, inside.link(INNER)?.index);
        let peer = Self { name: name.to_owned(), outer, inner, namespace };
        // XDP gets frames as they are, without the marks of work that is left to a device.
        for offload in Offload::LEFT_TO_DEVICE {
            set_offload(name, offload, false)?;
        }
        inside.request("set the peer's inner end up", set_up(inner))?;
        Ok(peer)
    }

    /// Gives the peer a carrier, or takes it away.
    pub(crate) fn set_carrier(&self, has: bool) -> Result<(), Error> {
        let mut handle = Handle::within(&self.namespace)?;
        let request = if has { set_up(self.inner) } else { set_down(self.inner) };
        Ok(handle.request(format!("set the carrier of {}", self.name), request)?)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The namespace of its inner end would take it with it, but later.
        let _ = Handle::new()
            .and_then(|mut handle| handle.request("delete the peer", delete_link_at(self.outer)));
    }
}
