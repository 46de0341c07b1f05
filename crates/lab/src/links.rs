//! Changes to the links of a running lab.

use model::Bandwidth;
use model::topology::End;
use netlink::{Handle, Tbf};
use pathfinder::Routes;

use crate::Error;
use crate::error::LookupError;
use crate::life::state::{Lab, lock};
use crate::node::build;
use crate::node::index::interface_index;

/// A change to a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Set the link down: no packets pass, and both ends lose their carrier.
    Down,
    /// Set the link up and restore its addresses, routes and SIDs.
    Up,
    /// Set or remove the rate of both directions.
    Rate(Option<Bandwidth>),
}

/// The ends to which a change was applied, as `node:interface`.
pub type Ends = Vec<String>;

impl Lab {
    /// True if all ends of a link are devices of nodes, which can lose their carrier.
    pub fn has_cable(&self, name: &str) -> Result<bool, Error> {
        let mut ends = self.segment(name)?.ends.iter();
        Ok(ends.all(|end| self.topology.nodes[end.node].has_namespace()))
    }

    /// Applies a change to a link or a LAN. Waits for other commands to release the lab.
    pub fn change_link(&self, name: &str, change: Change) -> Result<Ends, Error> {
        let _lock = self.lock_to_start()?;
        self.change(name, change)
    }

    /// Applies a change like [`Lab::change_link`], but fails immediately if another command holds
    /// the lab.
    pub fn change_link_now(&self, name: &str, change: Change) -> Result<Ends, Error> {
        let _lock = lock(&self.directory).ok_or_else(|| Error::Busy(self.name.clone()))?;
        self.change(name, change)
    }

    fn change(&self, name: &str, change: Change) -> Result<Ends, Error> {
        let segment = self.segment(name)?;
        if let Change::Rate(_) = change {
            for end in &segment.ends {
                let node = &self.topology.nodes[end.node];
                if node.runs_xdp() && node.interfaces[end.interface].rate.is_none() {
                    let (link, node) = (segment.name.clone(), node.name.clone());
                    return Err(Error::Lookup(LookupError::NoQueue { link, node }));
                }
            }
        }
        let mut changed = Vec::new();
        let has_namespace = |end: &&End| self.topology.nodes[end.node].has_namespace();
        for end in segment.ends.iter().filter(has_namespace) {
            let node = &self.topology.nodes[end.node];
            let interface = &node.interfaces[end.interface];
            let index = interface_index(end.interface);
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
            // The kernel removed the routes over the link while it was down.
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
