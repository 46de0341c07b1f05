//! Properties of the paths from a port: whether they are unimpaired, and the copies that switches make.

use super::node::{Kind, NodeId, PortId};
use super::{Direction, Network};

impl Network {
    /// Returns true if no link on any path from a port has impairments or a tap. Consecutive
    /// packets may then be batched ([`crate::Run`]).
    pub fn is_clear(&mut self, port: PortId) -> bool {
        let NodeId(number) = port.0;
        if let Some(Some(known)) = self.clear.get(number) {
            return *known;
        }
        let is_clear = self.find_clear(port.0);
        self.clear.resize(self.nodes.len(), None);
        self.clear[number] = Some(is_clear);
        is_clear
    }

    fn find_clear(&self, from: NodeId) -> bool {
        let mut seen = vec![false; self.nodes.len()];
        let mut next = vec![from];
        seen[from.0] = true;
        while let Some(node) = next.pop() {
            for id in self.nodes[node.0].links.iter().flatten() {
                let Direction { link, filters, end: (end, _), .. } = &self.links[id.0];
                if !link.is_clear() || !filters.is_empty() {
                    return false;
                }
                let goes_on = !matches!(self.nodes[end.0].kind, Kind::Port);
                if goes_on && !std::mem::replace(&mut seen[end.0], true) {
                    next.push(*end);
                }
            }
        }
        true
    }

    /// Returns the maximum number of copies that switches make of a packet from a port.
    pub fn copies(&self, port: PortId) -> usize {
        let mut seen = vec![false; self.nodes.len()];
        let mut next = vec![port.0];
        let mut copies = 0;
        while let Some(node) = next.pop() {
            for id in self.nodes[node.0].links.iter().flatten() {
                let (end, _) = self.links[id.0].end;
                let switch = &self.nodes[end.0];
                let is_switch = matches!(switch.kind, Kind::Switch(_));
                if is_switch && !std::mem::replace(&mut seen[end.0], true) {
                    copies += switch.links.len().saturating_sub(1);
                    next.push(end);
                }
            }
        }
        copies.max(1)
    }
}
