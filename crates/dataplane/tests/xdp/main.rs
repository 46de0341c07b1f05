//! Test runs of the XDP program on constructed packets.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod bed;
mod behaviors;
mod found;
mod function;
mod mobile;
mod model;
mod oracle;
mod ports;
mod replace_csid;
mod slots;
mod tags;
mod too_big;
