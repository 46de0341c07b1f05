//! End-to-end tests of the control plane with the real binary: applications, their paths, and the
//! effects of failures of daemons, links and nodes. All need root.
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
