//! P4Runtime, the standard API of control planes for P4 targets (P4Runtime specification, version
//! 1; sections are cited by their titles, which are stable).
//!
//! A [`Device`] runs the program. This crate validates every request against p4info (ids, match
//! kinds, widths, masks, scopes, sizes) and stores the table entries; a device receives only valid
//! batches of [`Change`]s. Each device is owned by a dedicated thread, which serves primaries first.
//! No lock is held while a client waits, and a slow reader holds only the results of its own
//! request.
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
mod found;
mod handle;
mod handshakes;
mod matches;
mod memory;
mod object_info;
mod outgoing;
mod peer;
mod pipeline;
mod plan;
mod program;
mod read;
mod read_memory;
mod readers;
mod reading;
mod refused;
mod reply;
mod results;
mod sandboxed;
mod server;
mod service;
mod short_chains;
mod store;
mod stream;
mod targets;
mod tls;
mod types;
mod values;
mod warnings;
mod write;

pub use arbitration::MAX_CLIENTS;
pub use client::{Address, connect};
pub use data::Data;
pub use device::{
    Call, Change, Count, Device, Direct, Entry, Event, Initial, Key, Match, Meter, Packet, Refused,
    Target,
};
pub use error::{
    ActionError, BatchError, ConfigError, EntryError, Error, KeyError, RequestError, ValueError,
};
pub use object_info::{ObjectInfoError, object_info};
pub use outgoing::{QUEUE, QUEUE_BYTES};
pub use peer::LARGEST_MESSAGE;
pub use pipeline::{
    Action, Array, Field, MAX_CELLS, MatchKind, Param, Pipeline, Register, Scope, Table, ValueSet,
};
pub use sandboxed::{
    Alone, CPU_PORT, Counts, Health, Installed, Leaving, Plane, Prepared, Processes, Queues, Ran,
    Runner, Running, Sandboxed, Verdict,
};
pub use server::{Ended, Listener, serve};
pub use service::{Service, VERSION};
pub use tls::{Files, TlsError};
pub use types::{HeaderField, Type};
pub use values::Bits;

/// Generated types and services of `proto/p4/v1`.
pub use proto::p4::v1;

/// Error messages of gRPC, `proto/google/rpc`.
pub use proto::google::rpc;

/// Module tree that the generated paths expect.
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
