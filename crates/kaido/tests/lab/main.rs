//! Labs end to end, with the real binary. All need root, and no terminal.
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

/// The binary under test, with a folder of its own.
fn kaido() -> Kaido {
    Kaido::new(env!("CARGO_BIN_EXE_kaido"))
}

/// The text of a file in `labs/`.
fn file_in_labs(name: &str) -> String {
    format!("{}/../../labs/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Waits until it is so.
fn soon(what: &str, is_so: impl Fn() -> bool) {
    until(Duration::from_secs(20), || is_so().then_some(()), || format!("not so: {what}"));
}

/// One direction of what `kaido lab links` and its like list.
fn direction<'a>(all: &'a Value, link: &str, from: &str) -> &'a Value {
    let is_it = |one: &&Value| one["link"] == link && one["from"] == from;
    all.as_array().unwrap().iter().find(is_it).unwrap_or_else(|| panic!("{link} {from}: {all}"))
}
