//! Encodes a path as the shortest segment list that makes packets follow it.
//!
//! The list has no SID where the IGP follows the path anyway. A node SID (End) skips the links that
//! the IGP follows unambiguously. An adjacency SID (End.X) crosses a link that the IGP might not
//! take, such as one of several parallel links.
//!
//! The IGP's forwarding is computed on all arcs that it may use, including those of nodes with a
//! silent daemon. A path that is the only shortest one among more arcs is also the only one among
//! fewer.
//!
//! The last SID decapsulates at the path's endpoint, the last node that can decapsulate (RFC 9256
//! section 2.1), even where an earlier one would suffice. So the inner packet's own routing affects
//! as few links as possible.

use srv6::{SegmentList, Sid};

use crate::graph::{ArcId, Graph, NodeId};
use crate::igp::ShortestPaths;

/// The segment lists of one path, one per inner address family; both follow the same links.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lists {
    /// For inner IPv4. Empty if the IGP follows the path by itself and no SRH is needed.
    pub ipv4: SegmentList,
    /// For inner IPv6. Empty if the IGP follows the path by itself and no SRH is needed.
    pub ipv6: SegmentList,
}

/// The reason that a path cannot be encoded as a segment list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No node near the end of the path can decapsulate for its destination.
    #[error("no node on the path can decapsulate for {0}")]
    NoEgress(String),
    /// The IGP leaves the path at this node, and no SID there leads back.
    #[error("the IGP leaves the path after {0}, and no SID of {0} leads back")]
    NotEncodable(String),
    /// A service function is not on the path.
    #[error("a function is not on the path")]
    NotServed,
    /// More SIDs than a lab's MTU or a service function allows.
    #[error("the path needs {0} SIDs (maximum {1})")]
    TooLong(usize, usize),
}

/// The shortest segment lists for the path over `arcs` from `start`.
pub fn minimal(graph: &Graph, start: NodeId, arcs: &[ArcId]) -> Result<Lists, Error> {
    through(graph, start, arcs, &[])
}

/// The shortest segment lists for the path that visit service functions. Each entry of `served` is
/// the number of the arc (counted from 1) after which a function runs, and the function's SID. The
/// SID of a function is never followed by another SID of the same node.
pub fn through(
    graph: &Graph,
    start: NodeId,
    arcs: &[ArcId],
    served: &[(usize, Sid)],
) -> Result<Lists, Error> {
    let nodes: Vec<NodeId> =
        std::iter::once(start).chain(arcs.iter().map(|&id| graph.arc(id).to)).collect();
    let follows: Vec<usize> = nodes
        .iter()
        .enumerate()
        .map(|(at, &node)| at + ShortestPaths::from(graph, node).follows(graph, &arcs[at..]))
        .collect();
    let end = arcs.len();
    if served.is_empty() && follows[0] == end {
        return Ok(Lists::default());
    }
    // Find the last node that decapsulates and from which the IGP is certain to reach the end.
    let nearest = served.last().map_or(0, |(at, _)| at + 1);
    let egress = (nearest..=end)
        .rev()
        .find(|&at| graph.node(nodes[at]).sids.is_some() && follows[at] == end)
        .ok_or_else(|| Error::NoEgress(graph.node(nodes[end]).name.clone()))?;
    let way = Way { graph, nodes: &nodes, arcs, follows: &follows };
    let (mut through, mut from) = (Vec::new(), 0);
    for &(at, sid) in served {
        through.extend(way.fewest_sids(from, at)?);
        through.push(sid);
        from = at;
    }
    through.extend(way.fewest_sids(from, egress)?);
    let sids = graph.node(nodes[egress]).sids.expect("the egress was chosen by its SIDs");
    let list = |last: Sid| SegmentList(through.iter().copied().chain([last]).collect());
    let lists = Lists { ipv4: list(sids.decap_ipv4), ipv6: list(sids.decap_ipv6) };
    let most = if served.is_empty() { SegmentList::MAX } else { SegmentList::MAX_SERVED };
    match lists.ipv4.0.len() {
        length if length > most => Err(Error::TooLong(length, most)),
        _ => Ok(lists),
    }
}

/// The best continuation from a node of the path: the number of SIDs, and the first of them with
/// the position on the path that it leads to.
type WayOn = (usize, Option<(Sid, usize)>);

/// A path, and the position up to which the IGP follows it from each of its nodes.
#[derive(Clone, Copy)]
struct Way<'a> {
    graph: &'a Graph,
    nodes: &'a [NodeId],
    arcs: &'a [ArcId],
    follows: &'a [usize],
}

impl Way<'_> {
    /// The fewest SIDs from position `from` to position `to`, without a SID for the end itself;
    /// computed backwards.
    fn fewest_sids(self, from: usize, to: usize) -> Result<Vec<Sid>, Error> {
        let Self { graph, nodes, arcs, follows } = self;
        let mut best: Vec<Option<WayOn>> = vec![None; to + 1];
        for at in (from..=to).rev() {
            if follows[at] >= to {
                best[at] = Some((0, None));
                continue;
            }
            // The node of a service function processes no second SID.
            let nearest = at + usize::from(at == from && from > 0);
            for target in (nearest..=follows[at]).rev() {
                // Try node SIDs first: of two lists of equal length, prefer the one that survives a
                // link failure.
                let node_sid = graph.node(nodes[target]).sids.filter(|_| target > at);
                let choices = [
                    node_sid.map(|sids| (sids.end, target)),
                    graph.arc(arcs[target]).end_x.map(|sid| (sid, target + 1)),
                ];
                for (sid, next) in choices.into_iter().flatten() {
                    let Some((rest, _)) = best[next] else { continue };
                    if best[at].is_none_or(|(count, _)| rest + 1 < count) {
                        best[at] = Some((rest + 1, Some((sid, next))));
                    }
                }
            }
        }
        let mut sids = Vec::new();
        let mut at = from;
        loop {
            match best[at] {
                None => {
                    let name = &graph.node(nodes[follows[at]]).name;
                    return Err(Error::NotEncodable(name.clone()));
                }
                Some((_, None)) => return Ok(sids),
                Some((_, Some((sid, next)))) => {
                    sids.push(sid);
                    at = next;
                }
            }
        }
    }
}
