//! The commands, one file each.

pub(crate) mod app;
mod capture;
pub(crate) mod daemon;
pub(crate) mod dataplane;
pub(crate) mod doctor;
mod events;
pub(crate) mod experiments;
pub(crate) mod function;
mod function_text;
mod health_text;
mod import;
pub(crate) mod lab;
mod link;
mod links;
pub(crate) mod manual;
mod metrics;
mod mistakes;
pub(crate) mod network;
pub(crate) mod p4;
mod program;
mod progress;
mod replay;
pub(crate) mod test;
mod top;
mod topology_file;
pub(crate) mod xsk;
