//! The kernel as the oracle: the same frame goes through the kernel's own seg6 and seg6local
//! routes and through the program, and what leaves the node is compared byte for byte.
//!
//! What may differ: the flow label of an outer header that the node pushes. The kernel's is 0 for
//! IPv4 inside and a copy for IPv6; the program's is a hash of the flow (encapsulate.h). Everything
//! else that differs is in `known`.

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
