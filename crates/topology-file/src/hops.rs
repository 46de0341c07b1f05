//! Checks that the network's diameter does not exceed RIP's limit.

use std::collections::VecDeque;

use document::{Place, Step, steps};
use model::topology::{Routing, Topology};

/// Maximum number of hops between two routers: a metric of 16 is infinity (RFC 2453 section 3.6), a
/// router's own prefix has metric 1, and every hop adds 1.
const MAX_HOPS: usize = 14;
/// Maximum number of routers with RIP: a search begins at each of them.
const MAX_ROUTERS: usize = 1000;

/// Reports the first two routers that are too far apart for RIP.
pub(crate) fn check_hops(place: &mut Place<'_>, topology: &Topology) {
    for ipv6 in [false, true] {
        let rip = |node: usize| {
            let node = &topology.nodes[node];
            let routing = if ipv6 { node.ipv6_routing } else { node.ipv4_routing };
            routing == Routing::Rip
        };
        if (0..topology.nodes.len()).filter(|&node| rip(node)).count() > MAX_ROUTERS {
            let message = format!("more than {MAX_ROUTERS} routers run RIP");
            place.value(steps!["routing"], message, "use another protocol, or a smaller network");
            return;
        }
        // A router's own lines may configure other metrics.
        if topology.nodes.iter().any(|node| node.extra_config.is_some()) {
            continue;
        }
        let routers = (0..topology.nodes.len()).filter(|&node| rip(node));
        let mut far = routers.filter_map(|from| {
            let (to, hops) = farthest(topology, from, &rip);
            (hops > MAX_HOPS).then_some((from, to, hops))
        });
        let Some((from, to, hops)) = far.next() else { continue };
        let name = if ipv6 { "RIPng" } else { "RIP" };
        let [one, other] = [from, to].map(|node| &topology.nodes[node]);
        let message = format!(
            "`{}` and `{}` are {hops} hops apart, and {name} reaches no farther than {MAX_HOPS}",
            one.name, other.name
        );
        let own = [Step::from("nodes"), Step::from(one.name.as_str()), Step::from("routing")];
        let at = if place.tree.has(&own) { own.as_slice() } else { steps!["routing"] };
        place.value(at, message, "use another protocol, or a smaller network");
        return;
    }
}

/// The node with the highest hop count, over routers that run the protocol.
fn farthest(
    topology: &Topology,
    from: usize,
    takes_part: &impl Fn(usize) -> bool,
) -> (usize, usize) {
    let mut hops = vec![None; topology.nodes.len()];
    // The first router of a segment reaches all others.
    let mut is_searched = vec![false; topology.segments.len()];
    hops[from] = Some(0);
    let (mut queue, mut last) = (VecDeque::from([from]), (from, 0));
    while let Some(node) = queue.pop_front() {
        let Some(so_far) = hops[node] else { continue };
        last = (node, so_far);
        let new = topology.nodes[node]
            .interfaces
            .iter()
            .filter(|interface| !std::mem::replace(&mut is_searched[interface.segment], true));
        let adjacencies = new.flat_map(|interface| &interface.adjacencies);
        for peer in adjacencies.map(|adjacency| adjacency.node).filter(|&peer| takes_part(peer)) {
            if hops[peer].is_none() {
                hops[peer] = Some(so_far + 1);
                queue.push_back(peer);
            }
        }
    }
    last
}
