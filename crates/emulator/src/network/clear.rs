//! Detection of unimpaired paths.

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
}
