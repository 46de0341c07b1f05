//! Life cycle of labs: bringing up, listing, taking down, and the record of each.

pub(crate) mod build;
mod holder;
pub(crate) mod journal;
pub(crate) mod list;
pub(crate) mod options;
pub(crate) mod runs;
pub(crate) mod state;
pub(crate) mod teardown;
pub(crate) mod timeline;
pub(crate) mod up;
