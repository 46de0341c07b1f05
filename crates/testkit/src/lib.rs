//! Shared code of the end-to-end tests: the real binary with a private directory, labs that end
//! with the test, bystanders that must not be touched, the state of the machine before and after,
//! and AF_XDP programs of others: Open vSwitch, dpdk-testpmd and kxdpgun.
#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "an allocator is an unsafe trait")]
pub mod allocations;
mod alternative;
mod bystanders;
mod cards;
mod datagrams;
pub mod feature;
mod hosts;
mod kaido;
pub mod knotd;
pub mod kxdpgun;
mod lab;
mod machine;
pub mod openvswitch;
mod packages;
mod page;
mod preload;
pub mod programs;
mod random;
mod schemas;
mod service;
#[allow(unsafe_code, reason = "packet sockets have options and addresses of their own")]
#[allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]
mod tap;
pub mod testpmd;
#[allow(unsafe_code, reason = "a tap device is made by ioctl(2)")]
mod tun;
mod wait;

pub use alternative::alternative_names;
pub use bystanders::Bystanders;
pub use cards::{has_cards, join_by_cards, move_card};
pub use datagrams::{Count, Datagrams};
pub use hosts::{Hosts, RoundTrips};
pub use kaido::{Kaido, Said};
pub use lab::{Lab, process_in, processes_with};
pub use machine::Machine;
pub use packages::{Launch, Packages, guest_kernel};
pub use page::Page;
pub use preload::preloads;
pub use random::Random;
pub use schemas::{check_error, check_output, value_of, values_of};
pub use tap::Tap;
pub use tun::TapDevice;
pub use wait::{SetOnDrop, pause, until};
