//! The control plane end to end, with the real binary: applications, their paths, and what
//! happens to them when a daemon, a link or a node fails. All need root.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod bad_input;
mod counting;
mod crashes;
mod daemons;
mod emulated;
mod fake_controller;
mod faults;
mod functions;
mod matching;
mod monitor;
mod moving;
mod network;
mod placing;
mod topologies;
