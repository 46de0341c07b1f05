//! The topology file: text -> a fully resolved network, or all errors in the text.
//!
//! `document` deserializes the file into the grammar's serde types (`file`, `link_text`, `units`),
//! or reports the invalid parts. `resolve` and its sibling modules then resolve names and
//! addresses, check all rules and build a [`Topology`].
//!
//! The result is deterministic.

mod addresses;
mod applications;
mod attachment;
mod backend;
mod change;
mod course;
mod event_text;
mod events;
mod file;
mod functions;
mod hops;
mod impairments;
mod link_text;
mod links;
mod nodes;
mod resolve;
mod taken;
mod test;
mod tests_section;
mod timers;
mod traffic;
mod types;
mod units;

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod good_input;

use crate::document::{self, Kind};
use file::File;

pub use crate::document::{Problem, Problems};
pub use attachment::{Attachment, Means};
pub use backend::Backend;
pub use change::{Contradiction, LinkChange};
pub use course::{BadLine, Course, Moment, samples};
pub use events::{Action, Event};
pub use file::json_schema;
pub use functions::Function;
pub use impairments::{Discipline, Filter, Impairments, Jitter, Loss, Shape, Share, is_course};
pub use test::{Family, Ping, Test, TestDuration};
pub use timers::{BgpTimers, IsisTimers, OspfTimers, RipTimers, Timers};
pub use traffic::{Pattern, Traffic};
pub use types::{
    Adjacency, Dataplane, End, Interface, Node, NodeKind, RouterKind, Routing, SRV6_HEADROOM,
    Segment, SegmentKind, Topology,
};
pub use units::{Queue, Range};
pub(crate) use units::{Time, duration_text};

const KIND: Kind = Kind {
    max_mib: 4,
    large: "write a smaller lab; YAML anchors save repetition",
    empty: "write at least `name:` and `nodes:`",
    renamed: &[],
};

/// Parses a topology file's text; `file_name` is only used in messages.
pub fn parse(file_name: &str, text: &str) -> Result<Topology, Problems> {
    let (tree, file, report) =
        document::read::<File>(text, &KIND).map_err(|report| report.finish(file_name))?;
    resolve::resolve(&tree, &file, report).map_err(|report| report.finish(file_name))
}
