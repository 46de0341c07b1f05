//! Changing a running lab's links.

use model::Bandwidth;
use model::topology::End;
use netlink::{Handle, Tbf};

use crate::Error;
use crate::build;
use crate::routes::Routes;
use crate::state::{Lab, lock};

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The link is cut: nothing passes, and both ends see it.
    Down,
    /// The link is mended: its addresses, routes and SIDs are as they were.
    Up,
    /// The rate of both directions, or none.
    Rate(Option<Bandwidth>),
}

/// The ends that a change was made at, as `node:interface`.
pub type Ends = Vec<String>;

impl Lab {
    /// Whether all ends of a link are devices of nodes, which see whether it is cut.
    pub fn has_cable(&self, name: &str) -> Result<bool, Error> {
        let mut ends = self.segment(name)?.ends.iter();
        Ok(ends.all(|end| self.topology.nodes[end.node].has_namespace()))
    }

    /// Changes what is named about a link or a LAN, and nothing else; waits until no other command works
    /// on the lab.
    pub fn change_link(&self, name: &str, change: Change) -> Result<Ends, Error> {
        let _lock = self.lock_to_start()?;
        self.change(name, change)
    }

    /// The same, or an error at once if another command works on the lab.
    pub fn change_link_now(&self, name: &str, change: Change) -> Result<Ends, Error> {
        let _lock = lock(&self.folder).ok_or_else(|| Error::Busy(self.name.clone()))?;
        self.change(name, change)
    }

    fn change(&self, name: &str, change: Change) -> Result<Ends, Error> {
        let segment = self.segment(name)?;
        if let Change::Rate(_) = change {
            for end in &segment.ends {
                let node = &self.topology.nodes[end.node];
                if node.runs_xdp() && node.interfaces[end.interface].rate.is_none() {
                    let (link, node) = (segment.name.clone(), node.name.clone());
                    return Err(Error::NoQueue { link, node });
                }
            }
        }
        let mut changed = Vec::new();
        let has_namespace = |end: &&End| self.topology.nodes[end.node].has_namespace();
        for end in segment.ends.iter().filter(has_namespace) {
            let node = &self.topology.nodes[end.node];
            let interface = &node.interfaces[end.interface];
            let index = build::index_of(end.interface);
            let mut handle = Handle::within(&self.namespace(&node.name)?)?;
            let label = format!("interface {} of {}", interface.name, node.name);
            match change {
                Change::Down => handle.request(label, netlink::set_down(index))?,
                Change::Up => handle.request(label, netlink::set_up(index))?,
                Change::Rate(None) => handle.request(label, build::unshape(interface, index))?,
                Change::Rate(Some(rate)) => {
                    let limit = build::queue_bytes(interface, rate);
                    let tbf = Tbf::new(rate, u32::from(interface.mtu), limit);
                    handle.request(label, build::shape(interface, index, &tbf))?;
                }
            }
            changed.push(format!("{}:{}", node.name, interface.name));
        }
        if change == Change::Up {
            // With the link down the kernel dropped what led over it.
            let topology = &self.topology;
            let routes = [Routes::of_all(topology, false), Routes::of_all(topology, true)];
            for end in segment.ends.iter().filter(has_namespace) {
                let node = &topology.nodes[end.node];
                let mut handle = Handle::within(&self.namespace(&node.name)?)?;
                let links = handle.links()?;
                let up = |index| links.iter().any(|link| link.index == index && link.up);
                build::install_routes(topology, end.node, &mut handle, &routes, up)?;
            }
        }
        Ok(changed)
    }
}
