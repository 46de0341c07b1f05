//! Indexes of interfaces in their nodes' namespaces, which are known before the interfaces exist.

/// First interface index of a node's links. The others follow in topology order, so that all
/// indexes can be derived from the topology.
const FIRST_LINK: u32 = 10;

/// Index, in its namespace, of a node's interface: the position in the topology plus a constant.
pub fn interface_index(interface: usize) -> u32 {
    FIRST_LINK + interface as u32
}
