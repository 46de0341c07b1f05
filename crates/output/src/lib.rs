//! The JSON output of all commands: plain types, and a table of the commands that print them.
//!
//! Member names are the interface for scripts. A member's unit is the suffix of its name (`_ns`,
//! `_bps`, `_bytes`); members without a suffix count packets, or their comment has the unit. The
//! comments are the descriptions in the schema. [`schema`] describes the output of all commands.
#![forbid(unsafe_code)]

pub mod app;
pub mod bench;
pub mod capture;
pub mod dataplane;
pub mod doctor;
pub mod error;
pub mod events;
pub mod import;
pub mod lab;
pub mod link;
pub mod links;
pub mod metrics;
pub mod network;
pub mod p4;
pub mod replay;
mod schema;
mod table;
pub mod test;
pub mod top;
pub mod xsk;

pub use schema::{error_schema, schema, schema_of};
pub use table::{Command, Printed, Prints, TABLE};
