//! Indexes of interfaces in their nodes' namespaces, which are known before the interfaces exist.

/// First interface index of a node's links. The others follow in topology order, so that all
/// indexes can be derived from the topology.
const FIRST_LINK: u32 = 10;

/// Interface index, in its namespace, of a node's interface.
pub(crate) fn index_of(interface: usize) -> u32 {
    FIRST_LINK + interface as u32
}
