//! Names of the interfaces that belong to the data plane itself.

use netlink::Link;

use super::proxies;

pub(super) const INWARDS: &str = "kaido-in";
pub(super) const OUTWARDS: &str = "kaido-out";

/// Returns true if the interface belongs to the data plane itself.
pub(super) fn is_own(link: &Link) -> bool {
    link.name == INWARDS || link.name == OUTWARDS || proxies::is_own(link)
}
