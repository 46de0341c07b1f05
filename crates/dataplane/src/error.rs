//! Errors of installing policies and changing a data plane.

use std::path::PathBuf;

use ipnet::IpNet;
use model::Color;
use srv6::{SegmentList, Sid};

/// An error of a data plane or a headend.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The color, which is also a table number, is outside the range reserved for policies.
    #[error("color {} is outside {} to {}", color.0, Color::FIRST, Color::LAST)]
    ForeignColor {
        /// The color.
        color: Color,
    },
    /// The policy lacks a segment list for the address family of a flow.
    #[error("color {}: no segment list for packets to {destination}", color.0)]
    NoSegments {
        /// Color of the policy.
        color: Color,
        /// Destination of the flow.
        destination: IpNet,
    },
    /// A segment list is longer than the MTU of the links allows.
    #[error(
        "color {}: {} segments are more than the {} that the links have room for",
        color.0,
        segments.0.len(),
        SegmentList::MAX
    )]
    TooManySegments {
        /// Color of the policy.
        color: Color,
        /// The segment list.
        segments: SegmentList,
    },
    /// A flow matches its own encapsulated packets, which would be encapsulated endlessly.
    #[error("color {}: packets to {destination} include those to the segment {sid}", color.0)]
    Loop {
        /// Color of the policy.
        color: Color,
        /// Destination of the flow.
        destination: IpNet,
        /// The segment.
        sid: Sid,
    },
    /// The IGP has no route to the first segment.
    #[error("color {}: no route to the first SID {sid}", color.0)]
    NoRoute {
        /// Color of the policy.
        color: Color,
        /// The first segment.
        sid: Sid,
    },
    /// Another process kept changing the rules, which must have a single writer.
    #[error("color {}: another process changes its rules at the same time: stop it", color.0)]
    Contended {
        /// Color of the policy.
        color: Color,
    },
    /// The kernel rejected a request.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// A segment list has no segments.
    #[error("a segment list needs at least one segment")]
    EmptyList,
    /// A segment list has more segments than XDP can push onto a packet.
    #[error("{segments} exceeds the maximum of {most} segments in XDP")]
    ListTooLong {
        /// The segment list.
        segments: SegmentList,
        /// Maximum number of segments.
        most: usize,
    },
    /// The number of entries exceeds the capacity of a table.
    #[error("{count} {what} exceed the limit of {room}: raise it under `limits`")]
    TooMany {
        /// Kind of the entries.
        what: &'static str,
        /// Number of entries.
        count: usize,
        /// Capacity.
        room: u32,
    },
    /// Two interfaces have indexes with equal low bits.
    #[error(
        "the ports {first} and {second} have interface indices that the program cannot tell \
         apart: recreate one of them"
    )]
    SameSlot {
        /// The first interface.
        first: String,
        /// The second interface.
        second: String,
        /// Their indices.
        indices: [u32; 2],
    },
    /// With this setting, inner packets of service functions would be dropped or delivered locally.
    #[error(
        "End.AN.NF requires net.{}={wanted}, but it is {is}: set it with `sysctl -w`",
        key.replace('/', ".")
    )]
    FunctionSetting {
        /// The parameter, below /proc/sys/net.
        key: &'static str,
        /// Required value.
        wanted: &'static str,
        /// Current value.
        is: String,
    },
    /// Packets of a tenant would also be looked up in the main table.
    #[error(
        "line {line}: packets of tenant `{tenant}` without a route in its VRF's table {table} would be looked \
         up in the main table, which has the SIDs: `ip -6 route add unreachable default metric 4278198272 \
         table {table}`, or write `falls_through: true` at the tenant"
    )]
    FallsThrough {
        /// Line in the file.
        line: u32,
        /// The tenant.
        tenant: model::dataplane::Name,
        /// The table.
        table: u32,
    },
    /// Packets to the SID of a service function would bypass it.
    #[error(
        "{what} conflicts with service function {sid} (`ip -6 route show to root {sid}`): remove it, or \
         give the function another prefix"
    )]
    FunctionTaken {
        /// The SID.
        sid: ipnet::Ipv6Net,
        /// The conflicting entry, such as "a route to fd00::/64".
        what: String,
    },
    /// The policy is not defined.
    #[error("policy {policy:?} is not installed")]
    UnknownPolicy {
        /// Name.
        policy: crate::forwarding::PolicyId,
    },
    /// Entries that the kernel cannot handle without XDP.
    #[error(
        "kernel-only mode does not support these entries:{}{}",
        entries.iter().map(|entry| format!("\n  {entry}")).collect::<String>(),
        if *more > 0 { format!("\n  … and {more} more") } else { String::new() }
    )]
    NotInKernel {
        /// The first of these entries.
        entries: Vec<crate::forwarding::NotInKernel>,
        /// Number of further entries.
        more: usize,
    },
    /// An operation on the program or its tables failed.
    #[error(transparent)]
    Bpf(#[from] bpf::Error),
    /// The program cannot be attached to a port.
    #[error("`{port}` cannot be a port")]
    Port {
        /// The port.
        port: String,
        /// Its interface index.
        index: u32,
        /// Cause.
        #[source]
        source: bpf::Error,
    },
    /// The directory with the pins cannot be used.
    #[error("cannot use {}", path.display())]
    Pins {
        /// The file or directory.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// Returns the ports that are the reason, with their interface indices.
    pub fn ports(&self) -> Vec<(u32, &str)> {
        match self {
            Self::Port { port, index, .. } => vec![(*index, port)],
            Self::SameSlot { first, second, indices } => {
                vec![(indices[0], first), (indices[1], second)]
            }
            _ => Vec::new(),
        }
    }

    /// Returns true if the request itself is invalid, independent of the state of the machine.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Netlink(_) | Self::Bpf(_) | Self::Port { .. } | Self::Pins { .. })
    }
}
