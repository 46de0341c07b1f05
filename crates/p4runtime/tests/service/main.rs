//! Tests of the P4Runtime service over gRPC.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod answers;
mod apart;
mod arbitration;
mod busy;
mod common;
mod hostile;
mod memory;
mod programs;
mod read;
mod shell;
mod stream;
mod unread;
mod write;
