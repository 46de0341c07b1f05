//! The kernel's action for an endpoint, as the slow path installs it; the reverse is in `import.rs`.

use std::sync::Arc;

use netlink::LocalAction;
use srv6::{LookUp, Resolve, SegmentList};

use super::{Endpoint, Forwarding, PolicyId, Proxy, ProxyLink, Tags};

/// Returns the kernel's action that does the same.
pub(in crate::forwarding) fn counterpart(
    endpoint: &Endpoint,
    forwarding: &Forwarding,
) -> Option<LocalAction> {
    if endpoint.tags != Tags::default() || endpoint.flavors.replace_csid.is_some() {
        return None;
    }
    LocalAction::of(&endpoint.behavior.resolve(&mut FirstLists(forwarding)))
}

/// The arguments of behaviors in the kernel, where a policy is its first list.
struct FirstLists<'a>(&'a Forwarding);

impl Resolve<u32, LookUp, PolicyId, Arc<ProxyLink>> for FirstLists<'_> {
    type Interface = u32;
    type Table = LookUp;
    type Policy = SegmentList;
    type Link = ();

    fn interface(&mut self, index: &u32) -> u32 {
        *index
    }

    fn table(&mut self, table: &LookUp) -> LookUp {
        *table
    }

    fn policy(&mut self, id: &PolicyId) -> SegmentList {
        let lists = self.0.policies.get(id).map(|policy| &policy.lists);
        let first = lists.and_then(|lists| lists.first());
        first.map(|list| list.segments.clone()).unwrap_or_default()
    }

    fn proxy(&mut self, proxy: &Proxy) -> srv6::Proxy<()> {
        srv6::Proxy { to: (), back: (), via: proxy.via }
    }
}
