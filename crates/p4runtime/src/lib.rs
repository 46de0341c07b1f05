//! P4Runtime, the standard service by which a control plane programs what runs a P4 program
//! (P4Runtime specification, version 1; sections are cited by their names, which stay).
//!
//! What runs the program is a [`Device`]. It is asked nothing that p4info does not allow: ids, kinds
//! of matches, widths, masks, scopes and sizes are checked here, entries are kept here, and a device
//! gets batches of [`Change`]s that are right. Each device has a thread of its own, which is the only
//! one to touch it: no lock is held while anybody waits, and a reader that is slow holds nothing but
//! what it has asked for.
#![forbid(unsafe_code)]

mod arbitration;
mod cells;
mod client;
mod core;
mod data;
mod device;
mod digests;
mod entries;
mod error;
mod handshakes;
mod matches;
mod peer;
mod pipeline;
mod program;
mod read;
mod reply;
mod sandboxed;
mod server;
mod service;
mod store;
mod stream;
mod tls;
mod types;
mod values;
mod write;

pub use arbitration::{MOST_CLIENTS, QUEUE};
pub use client::{Address, connect};
pub use data::Data;
pub use device::{
    Call, Change, Count, Device, Direct, Entry, Event, Initial, Key, Match, Meter, Packet, Refused,
    Target,
};
pub use error::Error;
pub use peer::LARGEST_MESSAGE;
pub use pipeline::{
    Action, Array, Field, MOST_CELLS, MatchKind, Param, Pipeline, Register, Scope, Table, ValueSet,
};
pub use sandboxed::{
    Alone, CPU_PORT, Counts, Health, Installed, Leaving, Plane, Prepared, Processes, Ran, Runner,
    Running, Sandboxed, Verdict,
};
pub use server::{Ended, Listener, serve};
pub use service::{Service, VERSION};
pub use tls::{Files, TlsError};
pub use types::{HeaderField, Type};
pub use values::Bits;

/// The generated types and services of `proto/p4/v1`.
pub use proto::p4::v1;

/// Errors as gRPC carries them, `proto/google/rpc`.
pub use proto::google::rpc;

/// The tree that generated paths expect.
#[allow(missing_docs, clippy::all, unreachable_pub)]
mod proto {
    pub mod google {
        pub mod rpc {
            tonic::include_proto!("google.rpc");
        }
    }
    pub mod p4 {
        pub mod v1 {
            tonic::include_proto!("p4.v1");
        }
    }
}
