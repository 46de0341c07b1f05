//! Headers on the wire: conversion between bytes and values, without I/O.
//!
//! Each header has a checked view (`Ipv6Packet::new_checked`), which reads fields from the bytes
//! without copying, and a plain value (`Ipv6`), which is parsed from a view and appended to a
//! `Vec`. [`Headers::dissect`] parses the headers of a whole frame.
#![forbid(unsafe_code)]

mod bytes;
mod checksum;
mod describe;
mod error;
mod ethernet;
mod headers;
mod ipv4;
mod ipv6;
mod srh;
mod tcp;
mod udp;

pub use checksum::{Checksum, transport_checksum};
pub use describe::describe;
pub use error::WireError;
pub use ethernet::{
    ETHERNET, Ethernet, EthernetPacket, Mac, Vlan, VlanPacket, behind_tags, ethertype,
};
pub use headers::{Headers, IpLayer, Ports};
pub use ipv4::{Ipv4, Ipv4Packet};
pub use ipv6::{Ipv6, Ipv6Packet};
pub use srh::{Srh, SrhPacket};
pub use tcp::TcpPacket;
pub use udp::{Udp, UdpPacket};

/// Numbers of the IPv4 Protocol and IPv6 Next Header fields.
pub mod protocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// IPv4 encapsulation.
    pub const IPV4: u8 = 4;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// IPv6 encapsulation.
    pub const IPV6: u8 = 41;
    /// IPv6 routing header, such as the SRH.
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header.
    pub const FRAGMENT: u8 = 44;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
    /// IPv6 destination options.
    pub const DESTINATION_OPTIONS: u8 = 60;
    /// SCTP.
    pub const SCTP: u8 = 132;
}
