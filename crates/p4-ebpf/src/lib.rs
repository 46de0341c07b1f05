//! Compiles P4 programs to eBPF (RFC 9669) objects, with the conventions of p4c's uBPF back end.
//!
//! `flat` inlines all calls into one SSA graph, and `codegen` generates code from it: an object
//! (`p4_object`) with the tables in maps, as [`layout`] defines. The crate performs no I/O.
#![forbid(unsafe_code)]

mod codegen;
mod flat;
pub mod layout;

pub use codegen::{Compiled, compile, compile_with};
pub use flat::NotCompiled;
