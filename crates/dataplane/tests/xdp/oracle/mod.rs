//! The kernel as the oracle: the same frame is sent through the kernel's own seg6 and seg6local
//! routes and through the program, and the output is compared byte for byte.
//!
//! The only permitted difference is the flow label of an outer header that the node pushes. The
//! kernel's is 0 for inner IPv4 and a copy for inner IPv6; the program's is a hash of the flow
//! (encapsulate.h). All other differences are in `known`.

mod compare;
mod differential;
mod endpoint;
mod headend;
mod known;
mod live;
mod malformed;
mod mutations;
mod network;
mod node;
mod packets;
mod random;
mod regressions;
mod vlan;
mod vrf;
