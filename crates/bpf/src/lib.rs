//! BPF programs of Kaido: skeletons, typed maps and attachment.
//!
//! The sources are in `bpf/` at the top of the repository. Their types are in the skeletons, which
//! are generated from the BTF of the objects.

mod abi;
pub mod attach;
mod dropped;
mod error;
mod exit;
mod found;
mod front;
mod function;
mod guard;
mod held;
mod index;
mod libbpf;
pub mod measure;
mod meter;
mod needs;
pub mod pin;
mod port_filter;
pub mod proof;
mod proxy;
mod random;
mod records;
mod skb;
mod skeleton;
mod sockets;
pub mod srv6;
mod table;
mod tc;
mod trace;

pub use abi::Abi;
pub use dropped::Drops;
pub use error::Error;
pub use exit::lead_to_queue;
pub use function::FunctionEnds;
pub use guard::unguard;
pub use held::Held;
pub use measure::{Measure, Template, words};
pub use meter::{Count, Meter};
pub use port_filter::unfilter_port;
pub use proof::Proof;
pub use proxy::{ProxyEnds, detach_return};
pub use records::{Indexed, Numbered, wait_for_packets};
pub use skb::{Skb, SkbRun};
pub use sockets::{OnlySockets, ToSockets, program_name};
pub use srv6::Srv6;
pub use table::{Mapped, Table};
pub use tc::prepare_tc;
pub use trace::{Filter, Replay, Replayed, Traced, Tracer};

/// Returns the number of CPUs that the machine may have, which is that of the rows of per-CPU maps. `None`
/// if it is not known (/sys is missing).
pub fn possible_cpus() -> Option<u32> {
    libbpf_rs::num_possible_cpus().ok()?.try_into().ok()
}
