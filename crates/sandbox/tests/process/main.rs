//! Programs in processes of their own.

mod common;
mod control;
mod faults;
mod isolation;
mod kills;
mod swaps;
mod traffic;
mod vm;
