//! The file's grammar as serde types; the JSON Schema is generated from the same types.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};

use super::event_text::Event;
use super::functions::FunctionText;
use super::link_text::Link;
use super::test::Family;
use super::types::Dataplane;
use super::units::{BandwidthRange, PercentRange, Time, TimeRange};
use crate::document::{Address, Entries, Items, Prefix, Prefix4, Prefix6};
use crate::{Bandwidth, Class, Dscp, Locator, PortRange, Protocol};

/// A Kaido lab: nodes, links, applications.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// The lab's name.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9-]{0,30}$"))]
    pub(super) name: String,
    /// What random choices start from.
    pub(super) seed: Option<u64>,
    /// The largest packet that hosts send, without SRv6's headers.
    #[schemars(range(min = 1280, max = 9000))]
    pub(super) mtu: Option<u16>,
    /// The routing protocols of FRR routers, at most one per address family.
    pub(super) routing: Option<Vec<Routing>>,
    /// The timers of OSPF, for both families.
    pub(super) ospf: Option<Ospf>,
    /// The timers of IS-IS.
    pub(super) isis: Option<Isis>,
    /// The timers of RIP and RIPng.
    pub(super) rip: Option<Rip>,
    /// The timers of BGP.
    pub(super) bgp: Option<Bgp>,
    /// Segment routing.
    pub(super) srv6: Option<Srv6>,
    /// Which data plane runs the SRv6 of routers that do not say otherwise.
    pub(super) dataplane: Option<Dataplane>,
    /// The pools that addresses are taken from.
    pub(super) addresses: Option<Addresses>,
    /// Hosts and routers.
    pub(super) nodes: Entries<Node>,
    /// Links of two nodes, and LANs of two or more.
    #[serde(default)]
    pub(super) links: Vec<Link>,
    /// Whether a controller and the nodes' daemons run; by default where there are applications.
    pub(super) controller: Option<bool>,
    /// Applications, each with what it asks of its path.
    #[serde(default)]
    pub(super) applications: Entries<ApplicationText>,
    /// What happens to links at which time.
    #[serde(default)]
    pub(super) events: Vec<Event>,
    /// What must hold in the running lab.
    #[serde(default)]
    pub(super) tests: Vec<TestText>,
}

/// A routing protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Routing {
    /// Computed routes, for each family that no other protocol covers.
    Static,
    /// OSPFv2, for IPv4.
    Ospf,
    /// OSPFv3, for IPv6.
    Ospf6,
    /// IS-IS, for both families.
    Isis,
    /// RIP, for IPv4.
    Rip,
    /// RIPng, for IPv6.
    Ripng,
    /// BGP, for both families.
    Bgp,
}

impl Routing {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Ospf => "ospf",
            Self::Ospf6 => "ospf6",
            Self::Isis => "isis",
            Self::Rip => "rip",
            Self::Ripng => "ripng",
            Self::Bgp => "bgp",
        }
    }

    pub(super) fn is_ipv4(self) -> bool {
        matches!(self, Self::Ospf | Self::Rip | Self::Isis | Self::Bgp)
    }

    pub(super) fn is_ipv6(self) -> bool {
        matches!(self, Self::Ospf6 | Self::Ripng | Self::Isis | Self::Bgp)
    }
}

/// The timers of OSPF.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Ospf {
    /// How often a router says hello.
    pub(super) hello: Option<Time>,
    /// How long a silent neighbour counts as alive.
    pub(super) dead: Option<Time>,
    /// Whether BFD watches neighbours; off when absent.
    pub(super) bfd: Option<bool>,
}

/// The timers of IS-IS.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Isis {
    /// How often a router says hello.
    pub(super) hello: Option<Time>,
    /// How long a silent neighbour counts as alive; a multiple of `hello`.
    pub(super) hold: Option<Time>,
    /// Whether BFD watches neighbours; off when absent.
    pub(super) bfd: Option<bool>,
}

/// The timers of RIP and RIPng.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rip {
    /// How often a router says all that it knows.
    pub(super) update: Option<Time>,
    /// How long a route holds that is not heard of.
    pub(super) timeout: Option<Time>,
    /// How long neighbours are told that a route is gone.
    pub(super) garbage: Option<Time>,
}

/// The timers of BGP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Bgp {
    /// How often a neighbour hears something.
    pub(super) keepalive: Option<Time>,
    /// How long a silent neighbour counts as alive.
    pub(super) hold: Option<Time>,
    /// Whether BFD watches neighbours; on when absent.
    pub(super) bfd: Option<bool>,
}

/// Segment routing, for the whole lab.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Srv6 {
    /// The block that locators are taken from.
    pub(super) block: Option<Prefix6>,
}

/// The pools that addresses are taken from.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Addresses {
    /// The IPv4 prefixes of links, a /24 each.
    pub(super) ipv4: Option<Prefix4>,
    /// The IPv6 prefixes of links, a /64 each.
    pub(super) ipv6: Option<Prefix6>,
    /// The IPv4 loopbacks of routers.
    pub(super) loopbacks4: Option<Prefix4>,
    /// The IPv6 loopbacks of routers.
    pub(super) loopbacks6: Option<Prefix6>,
}

/// A node: a host unless it has `router`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {
    /// What forwards packets here.
    pub(super) router: Option<Router>,
    /// Segment routing: on by default on routers, with an automatic locator.
    pub(super) srv6: Option<NodeSrv6>,
    /// This router's own routing protocols.
    pub(super) routing: Option<Vec<Routing>>,
    /// The autonomous system of a BGP router; one of its own when absent.
    #[serde(rename = "as")]
    #[schemars(range(min = 1, max = 4_294_967_294_u32))]
    pub(super) asn: Option<u32>,
    /// At most one address per family.
    pub(super) loopback: Option<Vec<Address>>,
    /// Lines that are added to FRR's configuration.
    pub(super) config: Option<String>,
    /// The interface of this machine that the node stands for.
    pub(super) attach: Option<String>,
    /// How the packets of an attached interface are taken; as frames when absent.
    pub(super) via: Option<Via>,
    /// What is behind an attached interface whose packets come by a netfilter queue.
    pub(super) prefixes: Option<Items<Prefix>>,
    /// Whether those packets pass by as if there were no lab while the emulator does not run.
    pub(super) bypass: Option<bool>,
    /// Which data plane runs the node's SRv6.
    pub(super) dataplane: Option<Dataplane>,
    /// Service functions by name: the node's netfilter, which SRv6 packets are sent through.
    #[serde(default)]
    pub(super) functions: Entries<FunctionText>,
}

/// What forwards packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Router {
    /// The kernel, with FRR's daemons.
    Frr,
    /// The kernel, with static routes.
    Linux,
    /// The emulator itself.
    Virtual,
}

/// How an attached interface's packets are taken.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Via {
    /// As IP packets, by a netfilter queue.
    Nfqueue,
}

/// `srv6: false`, or `srv6: {locator: …}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeSrv6 {
    /// Whether the node has a locator; an automatic one.
    Switch(bool),
    /// The node's locator.
    Locator(Locator),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NodeSrv6Map {
    locator: Locator,
}

impl<'de> Deserialize<'de> for NodeSrv6 {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = NodeSrv6;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or a locator such as {locator: fd00:0:1::/48}")
            }

            fn visit_bool<E>(self, on: bool) -> Result<NodeSrv6, E> {
                Ok(NodeSrv6::Switch(on))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NodeSrv6, A::Error> {
                let map = NodeSrv6Map::deserialize(MapAccessDeserializer::new(map))?;
                Ok(NodeSrv6::Locator(map.locator))
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for NodeSrv6 {
    fn schema_name() -> Cow<'static, str> {
        "NodeSrv6".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let map = generator.subschema_for::<NodeSrv6Map>();
        json_schema!({"oneOf": [{"type": "boolean"}, map]})
    }
}

/// An application.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ApplicationText {
    /// The node that sends.
    pub(super) from: String,
    /// The node or prefix that receives.
    pub(super) to: String,
    /// The transport protocol; every protocol when absent.
    pub(super) protocol: Option<Protocol>,
    /// The ports that it sends to.
    pub(super) ports: Option<PortRange>,
    /// The ports that it sends from.
    pub(super) source_ports: Option<PortRange>,
    /// The code point of its packets.
    pub(super) dscp: Option<Dscp>,
    /// The bandwidth that it asks for, in layer-2 bits per second.
    pub(super) demand: Option<Bandwidth>,
    /// What it asks of its path.
    pub(super) class: Option<Class>,
    /// The service functions that its packets pass, in this order.
    #[serde(default)]
    pub(super) functions: Items<String>,
}

/// Something that must hold in the running lab: a ping, a throughput, or a route.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TestText {
    /// The node that sends.
    pub(super) from: Option<String>,
    /// The node that is pinged.
    pub(super) ping: Option<String>,
    /// The round-trip time that a ping takes: the median's.
    pub(super) rtt: Option<TimeRange>,
    /// How many pings may be lost.
    pub(super) loss: Option<PercentRange>,
    /// Whether no ping is to be answered.
    pub(super) unreachable: Option<bool>,
    /// How many pings are looked at together: 1, 5 for `rtt`, 100 for `loss` when absent.
    #[schemars(range(min = 1, max = 10_000))]
    pub(super) count: Option<u32>,
    /// Over which protocol; pings over both, throughput over IPv4 when absent.
    pub(super) family: Option<Family>,
    /// The node that receives.
    pub(super) to: Option<String>,
    /// The throughput that is reached.
    pub(super) throughput: Option<BandwidthRange>,
    /// The node whose routes are looked at.
    pub(super) on: Option<String>,
    /// The route.
    pub(super) route: Option<Prefix>,
    /// Whether the route is to be there; true when absent.
    pub(super) present: Option<bool>,
    /// The neighbour that one of its next hops leads to.
    pub(super) via: Option<String>,
    /// How soon it must hold.
    pub(super) within: Option<Time>,
}

/// The JSON Schema of a topology file, for editors and checkers.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(File).to_value()
}
