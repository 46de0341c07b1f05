//! What Kaido loads into the kernel: skeletons, typed maps, attaching.
//!
//! The sources are in `bpf/` at the top of the repository; their types arrive here through the
//! skeletons that are generated from the objects' BTF.

mod error;
mod meter;

pub use error::Error;
pub use meter::{Count, Meter};
