//! The gRPC interface between controller, nodes and users, and its conversions.
//!
//! Generated types stay in this crate and in the handlers that use it; all other code uses the
//! types of the model. Nodes and users reach a controller over a Unix socket.
#![forbid(unsafe_code)]

mod bounds;
mod convert;
mod endpoint;
mod wait;

pub use bounds::{LARGEST_REQUEST, large_requests, small_requests};
pub use convert::{ConvertError, sids_from_text, sids_to_text};
pub use endpoint::{
    ConnectError, LARGEST_MESSAGE, connect, connect_dataplane, connect_emulator, connect_xsk,
    in_one_line, now_ns,
};
pub use wait::{Presence, dataplane_is_running, emulator_answers, emulator_presence, missing};

/// The API version. It changes when an older peer would misunderstand a newer one.
pub const VERSION: u32 = 1;

/// The generated types and services.
#[allow(missing_docs, clippy::all, unreachable_pub)]
pub mod v1 {
    tonic::include_proto!("kaido.v1");
}
