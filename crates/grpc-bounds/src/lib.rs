//! Bounds on the memory that gRPC requests take, counted before it is allocated.
//!
//! A protobuf message takes many times its length once it is decoded: two bytes can be an element of some
//! hundred. [`Layer`] reads the bytes of a request as they arrive, and knows from the protocol's
//! description ([`Shapes`]) the size of the structs that they become. A message beyond its caller's
//! [`Bounds`] is refused with `RESOURCE_EXHAUSTED` before the rest of it is read. Messages share one
//! [`Budget`] of the process. A call returns its part when the call, and each job that has a clone of its
//! [`Held`], is done.
#![forbid(unsafe_code)]

mod budget;
mod frames;
mod layer;
mod shapes;
mod walk;

pub use budget::{Budget, Held};
pub use layer::{Caller, Layer, Service};
pub use shapes::Shapes;

/// The most that one message may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Its length in bytes.
    pub length: u64,
    /// The memory of its bytes and of the decoded message.
    pub memory: u64,
    /// True for callers that use the privileged pool of the budget.
    pub is_privileged: bool,
}
