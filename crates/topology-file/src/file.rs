//! The file's grammar as serde types, from which the JSON Schema is generated.

use std::borrow::Cow;
use std::fmt;

use document::{Address, Entries, Items, Prefix, Prefix4, Prefix6, Time};
use model::topology::{Dataplane, Family};
use model::{Bandwidth, Class, Dscp, PortRange, Protocol};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use srv6::Locator;
use tenants_file::TenantText;

use super::event_text::Event;
use super::function_text::FunctionText;
use super::link_text::Link;
use super::switch_text::SwitchText;
use super::units::{BandwidthRange, PercentRange, TimeRange};

/// A Kaido lab: nodes, links, applications.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Name of the lab.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9-]{0,30}$"))]
    pub(crate) name: String,
    /// Seed of random choices.
    pub(crate) seed: Option<u64>,
    /// Inner MTU: size of the largest packet that hosts send, without SRv6 headers.
    #[schemars(range(min = 1280, max = 9000))]
    pub(crate) mtu: Option<u16>,
    /// Routing protocols of FRR routers, at most one per address family.
    pub(crate) routing: Option<Vec<Routing>>,
    /// OSPF timers, for both families.
    pub(crate) ospf: Option<Ospf>,
    /// IS-IS timers.
    pub(crate) isis: Option<Isis>,
    /// RIP and RIPng timers.
    pub(crate) rip: Option<Rip>,
    /// BGP timers.
    pub(crate) bgp: Option<Bgp>,
    /// Segment routing.
    pub(crate) srv6: Option<Srv6>,
    /// Default data plane for SRv6 on routers.
    pub(crate) dataplane: Option<Dataplane>,
    /// Address pools.
    pub(crate) addresses: Option<Addresses>,
    /// Hosts, routers and switches.
    pub(crate) nodes: Entries<Node>,
    /// Links between two nodes, and LANs with two or more.
    #[serde(default)]
    pub(crate) links: Vec<Link>,
    /// True to run a controller and the nodes' daemons; by default true if there are applications.
    pub(crate) controller: Option<bool>,
    /// Applications with their requirements on paths.
    #[serde(default)]
    pub(crate) applications: Entries<ApplicationText>,
    /// Scheduled events on links.
    #[serde(default)]
    pub(crate) events: Vec<Event>,
    /// Conditions that must hold in the running lab.
    #[serde(default)]
    pub(crate) tests: Vec<TestText>,
}

/// A routing protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Routing {
    /// Computed static routes, for each family without a routing protocol.
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
    pub(crate) fn name(self) -> &'static str {
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

    pub(crate) fn is_ipv4(self) -> bool {
        matches!(self, Self::Ospf | Self::Rip | Self::Isis | Self::Bgp)
    }

    pub(crate) fn is_ipv6(self) -> bool {
        matches!(self, Self::Ospf6 | Self::Ripng | Self::Isis | Self::Bgp)
    }
}

/// OSPF timers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ospf {
    /// Hello interval.
    pub(crate) hello: Option<Time>,
    /// Dead interval: timeout for a silent neighbor.
    pub(crate) dead: Option<Time>,
    /// True to monitor neighbors with BFD; false if absent.
    pub(crate) bfd: Option<bool>,
}

/// IS-IS timers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Isis {
    /// Hello interval.
    pub(crate) hello: Option<Time>,
    /// Holding time: timeout for a silent neighbor; a multiple of `hello`.
    pub(crate) hold: Option<Time>,
    /// True to monitor neighbors with BFD; false if absent.
    pub(crate) bfd: Option<bool>,
}

/// RIP and RIPng timers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rip {
    /// Interval between periodic updates.
    pub(crate) update: Option<Time>,
    /// Timeout for a route that is not refreshed.
    pub(crate) timeout: Option<Time>,
    /// Garbage-collection time: time for which an expired route is still announced as unreachable.
    pub(crate) garbage: Option<Time>,
}

/// BGP timers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bgp {
    /// Keepalive interval.
    pub(crate) keepalive: Option<Time>,
    /// Hold time: timeout for a silent neighbor.
    pub(crate) hold: Option<Time>,
    /// True to monitor neighbors with BFD; true if absent.
    pub(crate) bfd: Option<bool>,
}

/// Segment routing options of the whole lab.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Srv6 {
    /// Block for locators.
    pub(crate) block: Option<Prefix6>,
}

/// Address pools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Addresses {
    /// IPv4 prefixes of links, a /24 each.
    pub(crate) ipv4: Option<Prefix4>,
    /// IPv6 prefixes of links, a /64 each.
    pub(crate) ipv6: Option<Prefix6>,
    /// IPv4 loopbacks of routers.
    pub(crate) loopbacks4: Option<Prefix4>,
    /// IPv6 loopbacks of routers.
    pub(crate) loopbacks6: Option<Prefix6>,
}

/// A node: a host unless it has `router` or `switch`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    /// Kind of router.
    pub(crate) router: Option<Router>,
    /// Switch: its links are one LAN, and tenants' P4 programs judge the packets of its ports.
    pub(crate) switch: Option<SwitchText>,
    /// Segment routing: on by default on routers, with an automatic locator.
    pub(crate) srv6: Option<NodeSrv6>,
    /// Routing protocols of this router.
    pub(crate) routing: Option<Vec<Routing>>,
    /// Autonomous system of a BGP router; a separate one for each router if absent.
    #[serde(rename = "as")]
    #[schemars(range(min = 1, max = 4_294_967_294_u32))]
    pub(crate) asn: Option<u32>,
    /// Loopback addresses, at most one per family.
    pub(crate) loopback: Option<Vec<Address>>,
    /// Additional lines of FRR's configuration.
    pub(crate) config: Option<String>,
    /// Interface of this machine that the node stands for.
    pub(crate) attach: Option<String>,
    /// Method of taking an attached interface's packets; as frames if absent.
    pub(crate) via: Option<Via>,
    /// Prefixes beyond an attached interface that uses netfilter queues.
    pub(crate) prefixes: Option<Items<Prefix>>,
    /// True if those packets bypass the lab while the emulator is not running.
    pub(crate) bypass: Option<bool>,
    /// Data plane for the node's SRv6.
    pub(crate) dataplane: Option<Dataplane>,
    /// Tenants by name, whose P4 programs judge the packets of the node's interfaces.
    #[serde(default)]
    pub(crate) tenants: Entries<TenantText>,
    /// Service functions by name: SRv6 packets are sent through the node's netfilter.
    #[serde(default)]
    pub(crate) functions: Entries<FunctionText>,
}

/// Kind of router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Router {
    /// The kernel with FRR's daemons.
    Frr,
    /// The kernel with static routes.
    Linux,
    /// A virtual router in the emulator.
    Virtual,
}

/// Method of taking an attached interface's packets.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Via {
    /// IP packets, through netfilter queues.
    Nfqueue,
}

/// Value of `srv6`: `false`, or `{locator: …}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeSrv6 {
    /// True if the node has an automatic locator.
    Switch(bool),
    /// Explicit locator.
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
pub(crate) struct ApplicationText {
    /// Sending node.
    pub(crate) from: String,
    /// Receiving node or prefix.
    pub(crate) to: String,
    /// Transport protocol; any protocol if absent.
    pub(crate) protocol: Option<Protocol>,
    /// Destination ports.
    pub(crate) ports: Option<PortRange>,
    /// Source ports.
    pub(crate) source_ports: Option<PortRange>,
    /// DSCP of its packets.
    pub(crate) dscp: Option<Dscp>,
    /// Requested bandwidth, in layer-2 bits per second.
    pub(crate) demand: Option<Bandwidth>,
    /// Criterion for its path.
    pub(crate) class: Option<Class>,
    /// Service functions that its packets traverse, in this order.
    #[serde(default)]
    pub(crate) functions: Items<String>,
}

/// A condition that must hold in the running lab: a ping, a throughput, or a route.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TestText {
    /// Sending node.
    pub(crate) from: Option<String>,
    /// Node to ping.
    pub(crate) ping: Option<String>,
    /// Range of the median round-trip time.
    pub(crate) rtt: Option<TimeRange>,
    /// Range of the fraction of pings lost.
    pub(crate) loss: Option<PercentRange>,
    /// True if no ping may be answered.
    pub(crate) unreachable: Option<bool>,
    /// Number of pings evaluated together; if absent 1, with `rtt` 5, with `loss` 100.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) count: Option<u32>,
    /// Address family; if absent both for pings, IPv4 for throughput.
    pub(crate) family: Option<Family>,
    /// Receiving node.
    pub(crate) to: Option<String>,
    /// Range of the throughput.
    pub(crate) throughput: Option<BandwidthRange>,
    /// Node that is checked for the route.
    pub(crate) on: Option<String>,
    /// Destination prefix of the route.
    pub(crate) route: Option<Prefix>,
    /// True if the route must exist; true if absent.
    pub(crate) present: Option<bool>,
    /// Neighbor that one of the next hops leads to.
    pub(crate) via: Option<String>,
    /// Deadline for the condition to hold, from the start of the test.
    pub(crate) within: Option<Time>,
}

/// JSON Schema of the topology file, for editors and validators.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(File).to_value()
}
