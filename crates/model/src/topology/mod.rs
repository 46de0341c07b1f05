//! The topology file: text -> a network that is fully known, or everything that is wrong with it.
//!
//! The way of a file:
//! 1. `tree`: YAML -> values that know their place (anchors and merge keys resolved);
//! 2. `de`, `file`, `link_text`, `units`: the tree -> the grammar's serde types. A part that does not
//!    fit is reported, cut out, and the rest read again, so that one run finds all of them;
//! 3. `resolve` and the modules beside it: names, addresses, rules -> [`Topology`].
//!
//! The same file always gives the same topology.

mod addresses;
mod applications;
mod de;
mod file;
mod link_text;
mod links;
mod nearest;
mod nodes;
mod problems;
mod resolve;
mod taken;
mod tests_section;
mod tree;
mod types;
mod units;

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod good_input;

use serde::Deserialize;

use file::File;
use problems::Report;
use tree::{Span, Step, Tree, Value};

pub use file::json_schema;
pub use problems::{Problem, Problems};
pub use types::{
    Adjacency, End, Interface, Node, NodeKind, OspfTimers, RouterKind, Routing, SRV6_HEADROOM,
    Segment, SegmentKind, Test, TestDuration, Topology,
};
pub use units::{Queue, Range};

/// The largest file that is read.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// After so many misfits the rest is left for the next run.
const MAX_MISFITS: usize = 100;

/// Reads a topology file's text; `file_name` is only for the messages.
pub fn parse(file_name: &str, text: &str) -> Result<Topology, Problems> {
    let mut report = Report::new(text);
    let start = Span { start: 0, end: 1 };
    if text.len() > MAX_BYTES {
        let help = "write a smaller lab; YAML anchors save repetition";
        report.add(start, "the file is larger than 4 MiB", Some(help.into()));
        return Err(report.finish(file_name));
    }
    let (tree, faults) = tree::load(text);
    let empty = match &tree {
        None => faults.is_empty(),
        Some(tree) => matches!(&tree.value, Value::Scalar { text, .. } if text.is_empty()),
    };
    for fault in faults {
        report.add(fault.span, fault.message, fault.help);
    }
    if empty {
        let help = "write at least `name:` and `nodes:`";
        report.add(start, "the file is empty", Some(help.into()));
        return Err(report.finish(file_name));
    }
    let file = tree.as_ref().and_then(|tree| read(tree.clone(), &mut report));
    match (tree, file) {
        (Some(tree), Some(file)) if report.is_empty() => {
            resolve::resolve(&tree, &file, report).map_err(|report| report.finish(file_name))
        }
        _ => Err(report.finish(file_name)),
    }
}

/// Reads the grammar's types, and reports every part of the tree that does not fit them.
fn read(mut tree: Tree, report: &mut Report<'_>) -> Option<File> {
    for _ in 0..MAX_MISFITS {
        let error = match File::deserialize(de::De(&tree)) {
            Ok(file) => return Some(file),
            Err(error) => error,
        };
        let path: Vec<Step> = error.path.into_iter().rev().collect();
        // What lacks only the part that was cut out before is no second problem.
        if !tree.is_pruned(&path) {
            report.add(error.span.unwrap_or(tree.span), error.message, error.help);
        }
        if !tree.prune(&path) {
            break;
        }
    }
    None
}
