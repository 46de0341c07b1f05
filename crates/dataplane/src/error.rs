//! Why a policy cannot be installed, or a data plane not changed.

use std::path::PathBuf;

use ipnet::IpNet;
use model::{Color, SegmentList, Sid};

/// Why a policy was not installed, not removed or not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The colour, which is a table number too, belongs to somebody else.
    #[error("colour {} is outside {} to {}", color.0, Color::FIRST, Color::LAST)]
    ForeignColor {
        /// The colour.
        color: Color,
    },
    /// A flow has no list of its address family.
    #[error("colour {}: no segment list for packets to {destination}", color.0)]
    NoSegments {
        /// The policy's colour.
        color: Color,
        /// The flow's destination.
        destination: IpNet,
    },
    /// A list is longer than the links have room for.
    #[error(
        "colour {}: {} segments are more than the {} that the links have room for",
        color.0,
        segments.0.len(),
        SegmentList::MAX
    )]
    TooManySegments {
        /// The policy's colour.
        color: Color,
        /// The list.
        segments: SegmentList,
    },
    /// A flow would match the packets that carry it, and they would be encapsulated for ever.
    #[error("colour {}: packets to {destination} include those to the segment {sid}", color.0)]
    Loop {
        /// The policy's colour.
        color: Color,
        /// The flow's destination.
        destination: IpNet,
        /// The segment.
        sid: Sid,
    },
    /// The IGP knows no way to the first segment.
    #[error("colour {}: no route to the first SID {sid}", color.0)]
    NoRoute {
        /// The policy's colour.
        color: Color,
        /// The first segment.
        sid: Sid,
    },
    /// The rules kept changing under the one writer that they are to have.
    #[error("colour {}: somebody else changes its rules at the same time", color.0)]
    Contended {
        /// The policy's colour.
        color: Color,
    },
    /// The kernel refused.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// A fake was told to fail.
    #[error("failing as told")]
    Told,
    /// A segment list without a segment.
    #[error("a segment list needs at least one segment")]
    EmptyList,
    /// More segments than XDP has room for in front of a packet.
    #[error("{segments} has more than the {most} segments that XDP has room for")]
    ListTooLong {
        /// The list.
        segments: SegmentList,
        /// The most.
        most: usize,
    },
    /// More entries than the tables have room for.
    #[error("{count} {what}, and room for {room}: raise it under `limits`")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// The most.
        room: u32,
    },
    /// Two interfaces whose indices agree in their low bits.
    #[error(
        "the ports {first} and {second} have interface indices that the program cannot tell \
         apart: make one of them anew"
    )]
    SameSlot {
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
    /// The inner packets of service functions would be dropped, or given to this node.
    #[error(
        "End.AN.NF needs net.{}={wanted}, and it is {is}: inner packets would go another way \
         (`sysctl -w`)",
        key.replace('/', ".")
    )]
    FunctionSetting {
        /// The parameter, below /proc/sys/net.
        key: &'static str,
        /// What it has to be.
        wanted: &'static str,
        /// What it is.
        is: String,
    },
    /// Packets of a tenant would be looked up in the main table, too.
    #[error(
        "line {line}: what the tenant `{tenant}` sends falls through its VRF's table {table} to the main \
         table, where the SIDs are: `ip -6 route add unreachable default metric 4278198272 table {table}`, \
         or write `falls_through: true` at the tenant"
    )]
    FallsThrough {
        /// The line in the file.
        line: u32,
        /// The tenant.
        tenant: model::dataplane::Name,
        /// The table.
        table: u32,
    },
    /// Packets to a service function's SID would go another way.
    #[error(
        "{what} is in the way of the service function {sid} (`ip -6 route show to root {sid}`): take \
         it away, or give the function a prefix of its own"
    )]
    FunctionTaken {
        /// The SID.
        sid: ipnet::Ipv6Net,
        /// Such as "a route to fd00::/64".
        what: String,
    },
    /// A policy that nothing defines.
    #[error("no policy {policy:?}")]
    UnknownPolicy {
        /// Its name.
        policy: crate::xdp::PolicyId,
    },
    /// A behaviour that the program does not have.
    #[error("the SID {sid} has a behaviour that only the kernel has")]
    NotInXdp {
        /// The SID.
        sid: ipnet::Ipv6Net,
    },
    /// Entries that the kernel alone cannot do.
    #[error(
        "the kernel alone (`dataplane: kernel`) cannot do all of this:{}{}",
        entries.iter().map(|entry| format!("\n  {entry}")).collect::<String>(),
        if *more > 0 { format!("\n  … and {more} more") } else { String::new() }
    )]
    NotInKernel {
        /// The first of them.
        entries: Vec<crate::xdp::NotInKernel>,
        /// How many more there are.
        more: usize,
    },
    /// The program or its tables failed.
    #[error(transparent)]
    Bpf(#[from] bpf::Error),
    /// The program does not attach to a port.
    #[error("`{port}` cannot be a port")]
    Port {
        /// The port.
        port: String,
        /// Why.
        #[source]
        source: bpf::Error,
    },
    /// The folder of what keeps ports at work cannot be used.
    #[error("cannot use {}", path.display())]
    Pins {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// Whether what was asked for cannot be, whatever the machine does.
    pub fn is_usage(&self) -> bool {
        let of_machine =
            matches!(self, Self::Netlink(_) | Self::Bpf(_) | Self::Port { .. } | Self::Pins { .. });
        !of_machine && !matches!(self, Self::Told)
    }
}
