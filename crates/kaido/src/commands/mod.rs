//! One file a command.

pub(crate) mod app;
pub(crate) mod daemon;
pub(crate) mod dataplane;
pub(crate) mod doctor;
mod events;
pub(crate) mod experiments;
pub(crate) mod function;
mod import;
pub(crate) mod lab;
mod link;
pub(crate) mod manual;
pub(crate) mod network;
pub(crate) mod test;
