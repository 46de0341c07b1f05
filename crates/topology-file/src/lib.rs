//! The topology file: text -> a fully resolved network, or all errors in the text.
//!
//! `document` deserializes the file into the grammar's serde types (`file`, `link_text`, `options`,
//! `units`), or reports the invalid parts. `resolve` and its sibling modules then resolve names and
//! addresses, check all rules and build a [`Topology`]. The result is deterministic.
//!
//! The command line has the same syntax for changes to links ([`link_change`]) and cross traffic
//! ([`cross_traffic`]). [`Course`] and [`samples`] read the files that a topology file names.
#![forbid(unsafe_code)]

mod addresses;
mod applications;
mod attachment;
mod backend;
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
mod programs;
mod resolve;
mod switch_text;
mod switches;
mod taken;
mod tests_section;
mod timers;
mod traffic_text;
mod units;

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod good_input;

use document::{FileKind, Problems};
use file::File;
use model::topology::Topology;

pub use course::{BadLine, Course, Moment, samples};
pub use file::json_schema;
pub use options::link_change;
pub use traffic_text::cross_traffic;

const KIND: FileKind = FileKind {
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
