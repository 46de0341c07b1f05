//! The data plane's daemon end to end, with the real binary, on its own ports. All tests need root.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod alone;
mod answers;
mod attaching;
mod bad_input;
mod bgp;
mod changes;
mod conntrack;
mod daemon;
mod directory;
mod doctor;
mod drivers;
mod edge;
mod firewall;
mod flapping;
mod function_chain;
mod function_command;
mod function_drops;
mod functions;
mod health;
mod held;
mod hmac;
mod import;
mod jumbo;
mod listing;
mod machines;
mod metrics;
mod mobile;
mod modes;
mod net;
mod numbered;
mod orders;
mod path_mtu;
mod proxies;
mod renamed;
mod returning;
mod slow_path;
mod soak;
mod stream;
mod tenants;
mod trace;
mod two_servers;
mod unit;
