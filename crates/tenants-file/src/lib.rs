//! The tenants file of `kaido xsk`: text -> tenants with their programs and ports, or all errors in
//! the text.
//!
//! A topology file has tenants, too, in the same serde types ([`TenantText`], [`tenants`]).
//!
//! `document` deserializes the file into the grammar's serde types (`file`); `resolve` then checks
//! names, numbers and references between tenants. Properties of the machine, such as the existence
//! of a program's file, are not checked here.
#![forbid(unsafe_code)]

mod file;
mod resolve;
#[cfg(test)]
mod tests;
mod text;

use document::{FileKind, Problems};
use model::Tenant;

pub use file::{TenantText, json_schema};
pub use resolve::{of_interface, tenants};
pub use text::text;

const KIND: FileKind = FileKind {
    max_mib: 16,
    large: "split it into files of several `kaido xsk run`",
    empty: "write at least `tenants:`",
    renamed: &[],
};

/// Parses a tenants file. `file_name` is used only in messages.
pub fn parse(file_name: &str, text: &str) -> Result<Vec<Tenant>, Problems> {
    let (tree, file, report) =
        document::read(text, &KIND).map_err(|report| report.finish(file_name))?;
    resolve::resolve(&tree, file, report).map_err(|report| report.finish(file_name))
}
