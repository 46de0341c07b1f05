//! Service functions: the path of their packets through the kernel, and the programs on it.

mod devices;
pub(super) mod guards;
pub(crate) mod netfilter;
pub(super) mod proxies;
mod queues;
