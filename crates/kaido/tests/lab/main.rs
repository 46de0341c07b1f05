//! End-to-end tests of labs with the real binary. All need root, and none needs a terminal.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod attached;
mod bad_files;
mod capture;
mod conformance;
mod daemons;
mod emulated;
mod events;
mod faults;
mod frr;
mod import;
mod kill;
mod packs;
mod programs;
mod protocols;
mod rate;
mod ring;
mod seeing;
mod srv6;
mod topologies;
mod traffic;
mod verify;
mod virtual_routers;
mod xdp;

use std::time::Duration;

use serde_json::Value;
use testkit::{Kaido, until};

/// The binary under test, with its own directory.
fn kaido() -> Kaido {
    Kaido::new(env!("CARGO_BIN_EXE_kaido"))
}

/// Path of a file in `labs/`.
fn file_in_labs(name: &str) -> String {
    format!("{}/../../labs/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Waits until a condition holds.
fn soon(what: &str, is_so: impl Fn() -> bool) {
    until(Duration::from_secs(20), || is_so().then_some(()), || format!("not so: {what}"));
}

/// One direction of a link in the output of `kaido lab links` and similar commands.
fn direction<'a>(all: &'a Value, link: &str, from: &str) -> &'a Value {
    let is_it = |one: &&Value| one["link"] == link && one["from"] == from;
    all.as_array().unwrap().iter().find(is_it).unwrap_or_else(|| panic!("{link} {from}: {all}"))
}
