//! The data plane's file: parses text into a configuration, or reports all errors in it.
//!
//! `document` parses it into the grammar's serde types (`file`, `steer_text`, `behaviors`), or
//! reports syntax errors. `resolve` and its sibling modules then check references and constraints.
//! Properties of the machine, such as the existence of a port, are not checked here.

mod behaviors;
mod edit;
mod file;
mod flavors;
mod health;
mod policies;
mod proxies;
mod resolve;
mod sids;
mod steer_text;
mod tenants;
mod types;

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod bad_proxies;
#[cfg(test)]
mod good_input;
#[cfg(test)]
mod manual;

use crate::document::{self, Kind, Renamed};
use file::FileText;

pub use crate::document::{Problem, Problems};
pub use crate::topology::Dataplane;
pub use edit::{with_sid, without_sid};
pub use file::json_schema;
pub use health::Health;
pub(crate) use health::HealthText;
pub use types::{
    Attachment, Behavior, Endpoint, File, Limits, Mode, Name, Policy, Port, Proxy, Steer, Table,
    Tags, Tenant, Weighted,
};

/// Name of a daemon's Unix socket in its state directory.
pub const SOCKET: &str = "dataplane.sock";

const KIND: Kind = Kind {
    max_mib: 1024,
    large: "remove what is not needed, or send it in parts over gRPC",
    empty: "write at least `ports:`",
    renamed: &[
        Renamed { section: "sids", old: "behaviour", new: "behavior" },
        Renamed { section: "sids", old: "flavours", new: "flavors" },
    ],
};

/// Parses a data plane's file. `file_name` is used only in messages.
pub fn parse(file_name: &str, text: &str) -> Result<File, Problems> {
    let (tree, file, report) =
        document::read::<FileText>(text, &KIND).map_err(|report| report.finish(file_name))?;
    resolve::resolve(&tree, file, report).map_err(|report| report.finish(file_name))
}
