//! The XDP program on packets of the test's own.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod bed;
mod behaviours;
mod found;
mod function;
mod oracle;
mod slots;
mod too_big;
