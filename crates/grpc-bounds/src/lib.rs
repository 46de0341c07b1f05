//! Bounds on the memory of gRPC requests, enforced before the memory is allocated.
//!
//! A decoded protobuf message takes many times its encoded length: an element of two bytes can
//! become several hundred. [`Layer`] reads the bytes of a request as they arrive, and computes the
//! size of the decoded structs from the protocol's descriptors ([`Shapes`]). A message beyond its
//! caller's [`Bounds`] is rejected with `RESOURCE_EXHAUSTED` before the rest of it is read. All
//! messages of the process share one [`Budget`]. A call releases its reservation when the call and
//! every job with a clone of its [`Reservation`] have completed.
//!
//! Responses are bounded by their service: it reserves memory for a large one
//! ([`Budget::reserve`]), and attaches the reservation to the response ([`Answer`]). An answer that
//! its client does not read for some time is dropped with its reservation.
#![forbid(unsafe_code)]

mod answer;
mod budget;
mod frames;
mod held;
mod layer;
mod shapes;
mod walk;
mod watch;

pub use answer::Answer;
pub use budget::{Budget, Reservation};
pub use held::HeldUntilSent;
pub use layer::{Caller, Layer, Service};
pub use shapes::Shapes;

/// Limits of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum length in bytes.
    pub length: u64,
    /// Maximum memory of the encoded and the decoded message, in bytes.
    pub memory: u64,
    /// True for callers that use the privileged pool of the budget.
    pub is_privileged: bool,
}
