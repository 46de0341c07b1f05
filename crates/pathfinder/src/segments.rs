//! From a path to the shortest segment list that makes packets follow it.
//!
//! No SID stands where the IGP goes that way anyway: a node SID (End) skips as many links as the
//! IGP follows without ambiguity, an adjacency SID (End.X) crosses a link that the IGP would not
//! take for sure, as one of several parallel ones.
//!
//! What the IGP does is judged with all arcs that it may see, also those of nodes whose daemons are
//! silent: a path that is the only shortest one among more arcs is so among fewer.
//!
//! The last SID decapsulates at the path's endpoint, the last node that can (RFC 9256 section
//! 2.1), even where an earlier one would do: the inner packet's own routing matters on as few
//! links as possible.

use model::{SegmentList, Sid};

use crate::graph::{ArcId, Graph, NodeId};
use crate::igp::ShortestPaths;

/// The lists for one path, one for each inner family; both cross the same links.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lists {
    /// For IPv4 inside. Empty: the IGP goes this way by itself, no header is needed.
    pub ipv4: SegmentList,
    /// For IPv6 inside. Empty: the IGP goes this way by itself, no header is needed.
    pub ipv6: SegmentList,
}

/// Why a path cannot be written as a segment list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No node near the path's end can decapsulate for its destination.
    #[error("no node on the path can decapsulate for {0}")]
    NoEgress(String),
    /// The IGP leaves the path at this node, and no SID there leads back.
    #[error("the IGP does not follow the path behind {0}, and no SID there does")]
    NotEncodable(String),
    /// A service function that the path does not come by.
    #[error("a function is not on the path")]
    NotServed,
    /// More SIDs than a lab's MTU, or a service function, has room for.
    #[error("the path needs {0} SIDs, more than {1}")]
    TooLong(usize, usize),
}

/// The shortest lists for the path over `arcs` from `start`.
pub fn minimal(graph: &Graph, start: NodeId, arcs: &[ArcId]) -> Result<Lists, Error> {
    through(graph, start, arcs, &[])
}

/// The shortest lists for the path that come by service functions: each is done on the arrival of an
/// arc, which is counted from 1, and has a SID. Where the SID of a function is, no other one of the
/// same node follows.
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
    // The last node that decapsulates and from where plain routing is sure to reach the end.
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

/// The shortest way on from a node of the path: how many SIDs, and the first of them with the
/// place on the path where it leads.
type WayOn = (usize, Option<(Sid, usize)>);

/// A path, and how far the IGP follows it from each of its nodes.
#[derive(Clone, Copy)]
struct Way<'a> {
    graph: &'a Graph,
    nodes: &'a [NodeId],
    arcs: &'a [ArcId],
    follows: &'a [usize],
}

impl Way<'_> {
    /// The SIDs between two places of the path, without the last one's own; computed from the back.
    fn fewest_sids(self, from: usize, to: usize) -> Result<Vec<Sid>, Error> {
        let Self { graph, nodes, arcs, follows } = self;
        let mut best: Vec<Option<WayOn>> = vec![None; to + 1];
        for at in (from..=to).rev() {
            if follows[at] >= to {
                best[at] = Some((0, None));
                continue;
            }
            // At a service function: its node does no other SID then.
            let nearest = at + usize::from(at == from && from > 0);
            for target in (nearest..=follows[at]).rev() {
                // A node SID first: of equally short lists the one that survives a link's failure.
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
