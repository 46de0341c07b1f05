//! The data plane file: text -> a configuration, or all errors in the text.
//!
//! `document` deserializes the file into the grammar's serde types (`file`, `sid_text`,
//! `steer_text`, `health_text`, `scalars`), or reports the invalid parts. `resolve` and the modules
//! below it then check references and constraints, section by section: `tenants` refer to
//! `policies`, `sids` to both. They share the parts that are known so far (`checked`). Properties
//! of the machine, such as the existence of a port, are not checked here.
#![forbid(unsafe_code)]

mod arguments;
mod behaviors;
mod checked;
mod edit;
mod file;
mod flavors;
mod health_text;
mod insert;
mod mobile;
mod names;
mod policies;
mod proxies;
mod resolve;
mod scalars;
mod sid_text;
mod sids;
mod steer_text;
mod tag_owners;
mod tenants;
mod vlan_text;
mod vlans;

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod good_input;
#[cfg(test)]
mod manual;

use document::{FileKind, Problems, Renamed};
use file::FileText;
use model::dataplane::File;

pub use edit::{with_sid, without_sid};
pub use file::json_schema;
pub use health_text::HealthText;

const KIND: FileKind = FileKind {
    max_mib: 1024,
    large: "remove what is not needed, or send it in parts over gRPC",
    empty: "write at least `ports:`",
    renamed: &[
        Renamed { section: "sids", old: "behaviour", new: "behavior" },
        Renamed { section: "sids", old: "flavours", new: "flavors" },
    ],
};

/// Parses a data plane file. `file_name` is used only in messages.
pub fn parse(file_name: &str, text: &str) -> Result<File, Problems> {
    let (tree, file, report) =
        document::read::<FileText>(text, &KIND).map_err(|report| report.finish(file_name))?;
    resolve::resolve(&tree, file, report).map_err(|report| report.finish(file_name))
}
