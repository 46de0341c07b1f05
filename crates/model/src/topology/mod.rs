//! The topology file: text -> a fully resolved network, or all errors in the text.
//!
//! `document` deserializes the file into the grammar's serde types (`file`, `link_text`, `options`, `units`),
//! or reports the invalid parts. `resolve` and its sibling modules then resolve names and
//! addresses, check all rules and build a [`Topology`]. Its types are in `values`.
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
mod function_text;
mod functions;
mod hops;
mod link_text;
mod links;
mod nodes;
mod option_text;
mod options;
mod resolve;
mod taken;
mod tests_section;
mod timers;
mod traffic;
mod units;
mod values;

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod good_input;

use crate::document::{self, Kind};
use file::File;

pub use crate::document::{Problem, Problems};
pub use change::{Contradiction, LinkChange};
pub use course::{BadLine, Course, Moment, samples};
pub use file::json_schema;
pub use traffic::{Pattern, Traffic};
pub(crate) use units::Time;
pub use values::attachment::{Attachment, Means};
pub use values::backend::Backend;
pub use values::event::{Action, Event};
pub use values::function::Function;
pub use values::impairments::{
    Discipline, Filter, Impairments, Jitter, Loss, Shape, Share, is_course,
};
pub use values::network::{
    Adjacency, Dataplane, End, Interface, Node, NodeKind, RouterKind, Routing, SRV6_HEADROOM,
    Segment, SegmentKind, Topology,
};
pub(crate) use values::quantity::duration_text;
pub use values::quantity::{Family, Queue, Range, TestDuration};
pub use values::test::{Ping, Test};
pub use values::timers::{BgpTimers, IsisTimers, OspfTimers, RipTimers, Timers};

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
