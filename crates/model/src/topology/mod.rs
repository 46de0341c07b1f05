//! A resolved topology: every name, address, SID, cost and MTU is known. `topology_file` parses it
//! from a file; these types know neither the file's grammar nor its rules.

mod attachment;
mod backend;
mod change;
mod event;
mod function;
mod impairments;
mod network;
mod quantity;
mod switch;
mod test;
mod timers;
mod traffic;

pub use attachment::{Attachment, Means};
pub use backend::Backend;
pub use change::{Contradiction, LinkChange};
pub use event::{Action, Event};
pub use function::Function;
pub use impairments::{Discipline, Filter, Impairments, Jitter, Loss, Shape, Share, is_course};
pub use network::{
    Adjacency, Dataplane, End, Interface, Node, NodeKind, RouterKind, Routing, SRV6_HEADROOM,
    Segment, SegmentKind, SegmentsByName, Topology,
};
pub(crate) use quantity::duration_text;
pub use quantity::{DurationText, Family, Queue, Range};
pub use switch::{BRIDGE, MAX_AF_XDP_MTU};
pub use test::{Ping, Test};
pub use timers::{BgpTimers, IsisTimers, OspfTimers, RipTimers, Timers};
pub use traffic::{Pattern, Traffic};
