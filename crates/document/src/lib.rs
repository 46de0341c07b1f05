//! YAML files whose errors are all reported in one run, with locations and fixes.
//!
//! A grammar is a set of serde types. [`read`] deserializes a file's text into them; the grammar's
//! own rules then report further errors in the same [`Report`], by the path of the invalid value
//! ([`Place`]).
//!
//! 1. `load`, `tree`: YAML -> values with locations (anchors and merge keys resolved);
//! 2. `de`, `elements`, `error`: tree -> serde types of a grammar. An invalid part is reported and
//!    pruned, and the rest is read again, so that one run finds all errors;
//! 3. `entries`, `text`, `units`: types for grammars: maps and lists whose elements are all checked,
//!    and scalars;
//! 4. `problems`: the errors, as displayed to users.
//!
//! [`outline()`] reads files that have no grammar here.
#![forbid(unsafe_code)]

mod cut;
mod de;
mod elements;
mod entries;
mod error;
mod load;
mod names;
mod nearest;
mod outline;
mod problems;
mod text;
mod tree;
mod units;

use std::cell::RefCell;

use serde::de::DeserializeOwned;

use de::De;
pub use entries::{Entries, Items};
pub use error::split_help;
pub use load::{Fault, load};
pub use names::listed;
pub use nearest::suggest;
pub use outline::{Outline, OutlineValue, outline};
pub use problems::{Place, Problem, Problems, Report};
pub use text::{Address, Prefix, Prefix4, Prefix6, PrefixOrAddress, prefix};
pub use tree::{Entry, Span, Step, Tree, Value};
pub use units::{Time, number_and_unit};

/// Maximum number of errors reported in one run.
const MAX_MISFITS: usize = 100;

/// Properties of a kind of file.
pub struct FileKind {
    /// Maximum file size in MiB.
    pub max_mib: usize,
    /// Help for a file that is too large.
    pub large: &'static str,
    /// Help for an empty file.
    pub empty: &'static str,
    /// Keys with another name in earlier versions.
    pub renamed: &'static [Renamed],
}

/// A key of the entries of a section that had another name in earlier versions, which is still
/// accepted.
pub struct Renamed {
    /// Key of the section in the file.
    pub section: &'static str,
    /// Earlier name.
    pub old: &'static str,
    /// Name in the grammar.
    pub new: &'static str,
}

/// Deserializes `text` into the grammar's type `T`, or reports every invalid part. The tree
/// returned contains all parts, in the same order.
pub fn read<'a, T: DeserializeOwned>(
    text: &'a str,
    kind: &FileKind,
) -> Result<(Tree, T, Report<'a>), Report<'a>> {
    let mut report = Report::new(text);
    let start = Span { end: 1, line: 1, ..Span::default() };
    if text.len() > kind.max_mib * 1024 * 1024 {
        let message = format!("the file is larger than {} MiB", kind.max_mib);
        report.add(start, message, Some(kind.large.into()));
        return Err(report);
    }
    let (tree, faults) = load(text);
    let empty = match &tree {
        None => faults.is_empty(),
        Some(tree) => matches!(&tree.value, Value::Scalar { text, .. } if text.is_empty()),
    };
    for fault in faults {
        report.add(fault.span, fault.message, fault.help);
    }
    if empty {
        report.add(start, "the file is empty", Some(kind.empty.into()));
        return Err(report);
    }
    let Some(mut tree) = tree else { return Err(report) };
    tree.rename(kind.renamed);
    match fit(&mut tree, &mut report) {
        Some(value) if report.is_empty() => Ok((tree, value, report)),
        _ => Err(report),
    }
}

/// Deserializes the grammar's types, and reports every invalid part of the tree.
fn fit<T: DeserializeOwned>(tree: &mut Tree, report: &mut Report<'_>) -> Option<T> {
    let mut misfits = 0;
    while misfits < MAX_MISFITS {
        let passed_over = RefCell::new(Vec::new());
        let result = T::deserialize(De { tree, passed_over: &passed_over });
        let mut errors = passed_over.into_inner();
        match result {
            Ok(value) if errors.is_empty() => return Some(value),
            Ok(_) => {}
            Err(error) => errors.push(error),
        }
        misfits += errors.len();
        let mut paths = Vec::with_capacity(errors.len());
        for error in errors {
            let path: Vec<Step> = error.path.into_iter().rev().collect();
            // An error that is only caused by a part that was pruned before is not reported.
            if !tree.is_pruned(&path) {
                report.add(error.span.unwrap_or(tree.span), error.message, error.help);
            }
            paths.push(path);
        }
        // Prune the last ones first, so that the other indices remain valid.
        let pruned = paths.iter().rev().filter(|path| tree.prune(path)).count();
        if pruned == 0 {
            break;
        }
    }
    None
}
