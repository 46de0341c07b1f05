//! Integration tests of sandbox processes.

mod common;
mod control;
mod digests;
mod faults;
mod hosted;
mod isolation;
mod kills;
mod machine;
mod queues;
mod swaps;
mod traffic;
mod vm;
