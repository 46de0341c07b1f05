//! Conversions between the generated types and the model's.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use ipnet::IpNet;
use model::topology::{Family, Pattern, Traffic};
use model::{
    Adjacency, AnnouncedFunction, AnnouncedInterface, Announcement, Application, Assignment,
    Bandwidth, Class, Color, Decision, Destination, Dscp, Flow, InterfaceLoad, NodeSids, Placement,
    Policy, PortRange, Protocol, Step, Telemetry, is_node_name,
};
use srv6::{SegmentList, Sid};

use crate::v1;

/// A message that cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// A required field is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// The value of a field is invalid.
    #[error("`{field}`: `{value}` is not valid")]
    Invalid {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
    },
}

fn invalid(field: &'static str, value: impl ToString) -> ConvertError {
    ConvertError::Invalid { field, value: value.to_string() }
}

fn parse<T: std::str::FromStr>(field: &'static str, text: &str) -> Result<T, ConvertError> {
    text.parse().map_err(|_| invalid(field, text))
}

fn sid(field: &'static str, text: &str) -> Result<Sid, ConvertError> {
    parse::<Ipv6Addr>(field, text).map(Sid)
}

/// Checks a node name by the rules of the topology file. The error quotes at most 12 characters of
/// an invalid name, about the length of the longest valid one.
fn node_name(field: &'static str, text: &str) -> Result<(), ConvertError> {
    if is_node_name(text) {
        return Ok(());
    }
    let beginning: String = text.chars().take(12).collect();
    Err(invalid(field, beginning.escape_debug()))
}

/// The SIDs of a list as text.
pub fn sids_to_text(list: &SegmentList) -> Vec<String> {
    list.0.iter().map(Sid::to_string).collect()
}

/// The segment list of the SIDs in `texts`.
pub fn sids_from_text(texts: &[String]) -> Result<SegmentList, ConvertError> {
    texts.iter().map(|text| sid("segments", text)).collect::<Result<_, _>>().map(SegmentList)
}

/// The bandwidth; zero means unlimited.
fn bandwidth(bps: u64) -> Option<Bandwidth> {
    (bps > 0).then(|| Bandwidth::from_bps(bps))
}

impl From<NodeSids> for v1::NodeSids {
    fn from(sids: NodeSids) -> Self {
        Self {
            end: sids.end.to_string(),
            decap_ipv4: sids.decap_ipv4.to_string(),
            decap_ipv6: sids.decap_ipv6.to_string(),
        }
    }
}

impl TryFrom<v1::NodeSids> for NodeSids {
    type Error = ConvertError;

    fn try_from(sids: v1::NodeSids) -> Result<Self, ConvertError> {
        Ok(Self {
            end: sid("end", &sids.end)?,
            decap_ipv4: sid("decap_ipv4", &sids.decap_ipv4)?,
            decap_ipv6: sid("decap_ipv6", &sids.decap_ipv6)?,
        })
    }
}

impl From<&AnnouncedFunction> for v1::Function {
    fn from(function: &AnnouncedFunction) -> Self {
        Self {
            name: function.name.clone(),
            prefix: function.prefix.to_string(),
            sid: function.sid.to_string(),
            up: function.up,
        }
    }
}

impl TryFrom<v1::Function> for AnnouncedFunction {
    type Error = ConvertError;

    fn try_from(function: v1::Function) -> Result<Self, ConvertError> {
        Ok(Self {
            prefix: parse("prefix", &function.prefix)?,
            sid: sid("sid", &function.sid)?,
            name: function.name,
            up: function.up,
        })
    }
}

impl From<&AnnouncedInterface> for v1::Interface {
    fn from(interface: &AnnouncedInterface) -> Self {
        let adjacencies = interface.adjacencies.iter().map(|adjacency| v1::Adjacency {
            neighbour: adjacency.neighbour.clone(),
            cost: adjacency.cost,
            end_x: adjacency.end_x.map(|sid| sid.to_string()).unwrap_or_default(),
        });
        Self {
            name: interface.name.clone(),
            capacity_bps: interface.capacity.map_or(0, Bandwidth::bps),
            up: interface.up,
            adjacencies: adjacencies.collect(),
        }
    }
}

impl TryFrom<v1::Interface> for AnnouncedInterface {
    type Error = ConvertError;

    fn try_from(interface: v1::Interface) -> Result<Self, ConvertError> {
        let adjacency = |adjacency: v1::Adjacency| {
            let end_x = match adjacency.end_x.as_str() {
                "" => None,
                text => Some(sid("end_x", text)?),
            };
            node_name("neighbour", &adjacency.neighbour)?;
            Ok(Adjacency { neighbour: adjacency.neighbour, cost: adjacency.cost, end_x })
        };
        Ok(Self {
            name: interface.name,
            capacity: bandwidth(interface.capacity_bps),
            up: interface.up,
            adjacencies: interface
                .adjacencies
                .into_iter()
                .map(adjacency)
                .collect::<Result<_, _>>()?,
        })
    }
}

impl From<&Announcement> for v1::Hello {
    fn from(announcement: &Announcement) -> Self {
        Self {
            api_version: crate::VERSION,
            node: announcement.node.clone(),
            transit: announcement.transit,
            sids: announcement.sids.map(Into::into),
            addresses: announcement.addresses.iter().map(IpAddr::to_string).collect(),
            functions: announcement.functions.iter().map(Into::into).collect(),
            interfaces: announcement.interfaces.iter().map(Into::into).collect(),
            installed: Vec::new(),
            assignments: Vec::new(),
        }
    }
}

impl TryFrom<&v1::Hello> for Announcement {
    type Error = ConvertError;

    fn try_from(hello: &v1::Hello) -> Result<Self, ConvertError> {
        if hello.node.is_empty() {
            return Err(ConvertError::Missing("node"));
        }
        node_name("node", &hello.node)?;
        let addresses = hello.addresses.iter().map(|text| parse("addresses", text));
        let functions = hello.functions.iter().cloned().map(TryInto::try_into);
        let interfaces = hello.interfaces.iter().cloned().map(TryInto::try_into);
        Ok(Self {
            functions: functions.collect::<Result<_, _>>()?,
            node: hello.node.clone(),
            transit: hello.transit,
            sids: hello.sids.clone().map(TryInto::try_into).transpose()?,
            addresses: addresses.collect::<Result<_, _>>()?,
            interfaces: interfaces.collect::<Result<_, _>>()?,
        })
    }
}

impl From<Protocol> for v1::Protocol {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Tcp => Self::Tcp,
            Protocol::Udp => Self::Udp,
            Protocol::Sctp => Self::Sctp,
            Protocol::Icmp => Self::Icmp,
        }
    }
}

fn protocol(number: i32) -> Result<Protocol, ConvertError> {
    match v1::Protocol::try_from(number) {
        Ok(v1::Protocol::Tcp) => Ok(Protocol::Tcp),
        Ok(v1::Protocol::Udp) => Ok(Protocol::Udp),
        Ok(v1::Protocol::Sctp) => Ok(Protocol::Sctp),
        Ok(v1::Protocol::Icmp) => Ok(Protocol::Icmp),
        Ok(v1::Protocol::Unspecified) | Err(_) => Err(invalid("protocol", number)),
    }
}

fn ports(range: v1::PortRange) -> Result<PortRange, ConvertError> {
    let port = |port| u16::try_from(port).ok().filter(|port| *port > 0);
    match (port(range.first), port(range.last)) {
        (Some(first), Some(last)) if first <= last => Ok(PortRange { first, last }),
        _ => Err(invalid("ports", format!("{}-{}", range.first, range.last))),
    }
}

/// Protocol, source ports, ports and DSCP: the part common to `Flow` and `Application`.
type Matched = (Option<Protocol>, Option<PortRange>, Option<PortRange>, Option<Dscp>);

fn to_match((protocol, source_ports, ports, dscp): Matched) -> v1::Match {
    let range = |range: PortRange| v1::PortRange {
        first: u32::from(range.first),
        last: u32::from(range.last),
    };
    v1::Match {
        protocol: protocol.map(|protocol| v1::Protocol::from(protocol).into()),
        source_ports: source_ports.map(range),
        ports: ports.map(range),
        dscp: dscp.map(|dscp| u32::from(dscp.value())),
    }
}

fn from_match(matched: Option<v1::Match>) -> Result<Matched, ConvertError> {
    let matched = matched.unwrap_or_default();
    let dscp = |value| {
        let byte = u8::try_from(value).map_err(|_| invalid("dscp", value))?;
        Dscp::try_from(byte).map_err(|_| invalid("dscp", value))
    };
    Ok((
        matched.protocol.map(protocol).transpose()?,
        matched.source_ports.map(ports).transpose()?,
        matched.ports.map(ports).transpose()?,
        matched.dscp.map(dscp).transpose()?,
    ))
}

impl From<&Flow> for v1::Flow {
    fn from(flow: &Flow) -> Self {
        Self {
            source: flow.src.map(|prefix| prefix.to_string()).unwrap_or_default(),
            destination: flow.dst.to_string(),
            r#match: Some(to_match((flow.protocol, flow.src_ports, flow.dst_ports, flow.dscp))),
        }
    }
}

impl TryFrom<v1::Flow> for Flow {
    type Error = ConvertError;

    fn try_from(flow: v1::Flow) -> Result<Self, ConvertError> {
        let (protocol, src_ports, dst_ports, dscp) = from_match(flow.r#match)?;
        let src = match flow.source.as_str() {
            "" => None,
            text => Some(parse::<IpNet>("source", text)?),
        };
        let dst: IpNet = parse("destination", &flow.destination)?;
        Ok(Self { src, dst, protocol, src_ports, dst_ports, dscp })
    }
}

impl From<&Policy> for v1::Policy {
    fn from(policy: &Policy) -> Self {
        Self {
            color: policy.color.0,
            flows: policy.flows.iter().map(Into::into).collect(),
            ipv4_segments: sids_to_text(&policy.ipv4),
            ipv6_segments: sids_to_text(&policy.ipv6),
            closed: policy.closed,
        }
    }
}

impl TryFrom<v1::Policy> for Policy {
    type Error = ConvertError;

    fn try_from(policy: v1::Policy) -> Result<Self, ConvertError> {
        Ok(Self {
            color: Color(policy.color),
            flows: policy.flows.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
            ipv4: sids_from_text(&policy.ipv4_segments)?,
            ipv6: sids_from_text(&policy.ipv6_segments)?,
            closed: policy.closed,
        })
    }
}

impl From<&Application> for v1::Application {
    fn from(app: &Application) -> Self {
        let class = match app.class {
            Class::Bandwidth => v1::Class::Bandwidth,
            Class::LowLatency => v1::Class::LowLatency,
        };
        Self {
            name: app.name.clone(),
            from: app.from.clone(),
            to: app.to.to_string(),
            r#match: Some(to_match((app.protocol, app.src_ports, app.dst_ports, app.dscp))),
            demand_bps: app.demand.map_or(0, Bandwidth::bps),
            class: class.into(),
            functions: app.functions.clone(),
        }
    }
}

impl TryFrom<v1::Application> for Application {
    type Error = ConvertError;

    fn try_from(app: v1::Application) -> Result<Self, ConvertError> {
        let (protocol, src_ports, dst_ports, dscp) = from_match(app.r#match)?;
        let class = match v1::Class::try_from(app.class) {
            // Unspecified: the default of the topology file.
            Ok(v1::Class::Unspecified) => Class::default(),
            Ok(v1::Class::Bandwidth) => Class::Bandwidth,
            Ok(v1::Class::LowLatency) => Class::LowLatency,
            Err(_) => return Err(invalid("class", app.class)),
        };
        let to: Destination = parse("to", &app.to)?;
        Ok(Self {
            name: app.name,
            from: app.from,
            to,
            protocol,
            src_ports,
            dst_ports,
            dscp,
            demand: bandwidth(app.demand_bps),
            class,
            functions: app.functions,
        })
    }
}

impl From<&Assignment> for v1::Assign {
    fn from(assignment: &Assignment) -> Self {
        let placement = assignment.placement.as_ref().map(|placement| v1::Placement {
            start: placement.start.clone(),
            steps: placement.steps.iter().map(Into::into).collect(),
            reserved_bps: placement.reserved_bps,
        });
        Self {
            application: Some((&assignment.application).into()),
            policy: Some((&assignment.policy).into()),
            placement,
            serial: 0,
        }
    }
}

impl From<&Step> for v1::Step {
    fn from(step: &Step) -> Self {
        Self { interface: step.interface.clone(), node: step.node.clone() }
    }
}

impl TryFrom<v1::Assign> for Assignment {
    type Error = ConvertError;

    fn try_from(assign: v1::Assign) -> Result<Self, ConvertError> {
        let policy: Policy = assign.policy.ok_or(ConvertError::Missing("policy"))?.try_into()?;
        let step = |step: v1::Step| Step { interface: step.interface, node: step.node };
        let placement = assign.placement.map(|placement| Placement {
            start: placement.start,
            steps: placement.steps.into_iter().map(step).collect(),
            ipv4: policy.ipv4.clone(),
            ipv6: policy.ipv6.clone(),
            reserved_bps: placement.reserved_bps,
        });
        let application = assign.application.ok_or(ConvertError::Missing("application"))?;
        Ok(Self { application: application.try_into()?, policy, placement })
    }
}

impl From<&InterfaceLoad> for v1::InterfaceLoad {
    fn from(load: &InterfaceLoad) -> Self {
        Self {
            name: load.name.clone(),
            up: load.up,
            capacity_bps: load.capacity.map_or(0, Bandwidth::bps),
            rate_bps: load.rate_bps,
            loss: load.loss,
            backlog_bytes: load.backlog_bytes,
            congested: load.congested,
        }
    }
}

impl From<v1::InterfaceLoad> for InterfaceLoad {
    fn from(load: v1::InterfaceLoad) -> Self {
        Self {
            name: load.name,
            up: load.up,
            capacity: bandwidth(load.capacity_bps),
            rate_bps: load.rate_bps,
            loss: load.loss,
            backlog_bytes: load.backlog_bytes,
            congested: load.congested,
        }
    }
}

impl From<&Telemetry> for v1::Telemetry {
    fn from(telemetry: &Telemetry) -> Self {
        let load =
            |&(color, rate_bps): &(Color, u64)| v1::ApplicationLoad { color: color.0, rate_bps };
        Self {
            sampled_at_ns: telemetry.sampled_at_ns,
            interfaces: telemetry.interfaces.iter().map(Into::into).collect(),
            applications: telemetry.applications.iter().map(load).collect(),
            functions: telemetry
                .functions
                .iter()
                .map(|(name, up)| v1::FunctionState { name: name.clone(), up: *up })
                .collect(),
        }
    }
}

impl From<v1::Telemetry> for Telemetry {
    fn from(telemetry: v1::Telemetry) -> Self {
        let load = |load: v1::ApplicationLoad| (Color(load.color), load.rate_bps);
        Self {
            sampled_at_ns: telemetry.sampled_at_ns,
            interfaces: telemetry.interfaces.into_iter().map(Into::into).collect(),
            applications: telemetry.applications.into_iter().map(load).collect(),
            functions: telemetry
                .functions
                .into_iter()
                .map(|function| (function.name, function.up))
                .collect(),
        }
    }
}

impl From<Decision> for v1::Decision {
    fn from(decision: Decision) -> Self {
        Self {
            application: decision.application,
            cause: decision.cause,
            before: decision.before,
            after: decision.after,
            ipv4_segments: sids_to_text(&decision.ipv4),
            ipv6_segments: sids_to_text(&decision.ipv6),
            sampled_at_ns: decision.sampled_at_ns,
            received_at_ns: decision.received_at_ns,
            decided_at_ns: decision.decided_at_ns,
            sent_at_ns: decision.sent_at_ns,
            installed_at_ns: decision.installed_at_ns,
        }
    }
}

impl From<Traffic> for v1::CrossTraffic {
    fn from(traffic: Traffic) -> Self {
        use v1::cross_traffic::Pattern as Sent;
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (pattern, on_ns, off_ns) = match traffic.pattern {
            Pattern::Constant => (Sent::Constant, 0, 0),
            Pattern::Poisson => (Sent::Poisson, 0, 0),
            Pattern::OnOff { on, off } => (Sent::OnOff, nanos(on), nanos(off)),
        };
        Self {
            rate_bps: traffic.rate.bps(),
            duration_ns: nanos(traffic.duration),
            pattern: pattern.into(),
            on_ns,
            off_ns,
            size: traffic.size,
            ipv6: traffic.family == Family::Ipv6,
        }
    }
}

impl TryFrom<v1::CrossTraffic> for Traffic {
    type Error = ConvertError;

    fn try_from(traffic: v1::CrossTraffic) -> Result<Self, ConvertError> {
        use v1::cross_traffic::Pattern as Sent;
        let pattern = match traffic.pattern() {
            Sent::Unspecified => return Err(invalid("pattern", traffic.pattern)),
            Sent::Constant => Pattern::Constant,
            Sent::Poisson => Pattern::Poisson,
            Sent::OnOff => Pattern::OnOff {
                on: Duration::from_nanos(traffic.on_ns),
                off: Duration::from_nanos(traffic.off_ns),
            },
        };
        Ok(Self {
            rate: Bandwidth::from_bps(traffic.rate_bps),
            duration: Duration::from_nanos(traffic.duration_ns),
            pattern,
            size: traffic.size,
            family: if traffic.ipv6 { Family::Ipv6 } else { Family::Ipv4 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_what_arrives() {
        let flow = |dst: &str| Flow {
            src: None,
            dst: dst.parse().unwrap(),
            protocol: Some(Protocol::Tcp),
            src_ports: None,
            dst_ports: Some("5201-5210".parse().unwrap()),
            dscp: Some("ef".parse().unwrap()),
        };
        let policy = Policy {
            color: Color(7001),
            flows: vec![flow("10.0.5.2/32"), flow("fd02:0:0:5::2/128")],
            ipv4: SegmentList(vec![Sid("fd00:0:5:d4::".parse().unwrap())]),
            ipv6: SegmentList(vec![Sid("fd00:0:5:d6::".parse().unwrap())]),
            closed: true,
        };
        assert_eq!(Policy::try_from(v1::Policy::from(&policy)), Ok(policy));
        let function = AnnouncedFunction {
            name: "fw".into(),
            prefix: "fd00:0:5:f000::/112".parse().unwrap(),
            sid: Sid("fd00:0:5:f000::1111".parse().unwrap()),
            up: true,
        };
        assert_eq!(AnnouncedFunction::try_from(v1::Function::from(&function)), Ok(function));
    }

    #[test]
    fn a_hello_names_nodes_as_the_topology_file_does() {
        let adjacency = |neighbour: &str| v1::Interface {
            adjacencies: vec![v1::Adjacency { neighbour: neighbour.into(), ..Default::default() }],
            ..Default::default()
        };
        let hello = |node: &str, neighbour: &str| {
            let interfaces = vec![adjacency(neighbour)];
            let hello = v1::Hello { node: node.into(), interfaces, ..Default::default() };
            Announcement::try_from(&hello).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(hello("Tokyo_East1", "r2"), Ok(()));
        assert_eq!(hello("a".repeat(11).as_str(), "r2"), Ok(()));
        let said = |field, value| Err(format!("`{field}`: `{value}` is not valid"));
        assert_eq!(hello(&"a".repeat(1 << 20), "r2"), said("node", "aaaaaaaaaaaa"));
        assert_eq!(hello("r 1", "r2"), said("node", "r 1"));
        assert_eq!(hello("r\n1", "r2"), said("node", "r\\n1"));
        assert_eq!(hello("r1", "../r2"), said("neighbour", "../r2"));
        assert_eq!(hello("", "r2"), Err("`node` is missing".into()));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_field() {
        let mut flow = v1::Flow { destination: "10.0.0.0/8".into(), ..Default::default() };
        flow.r#match = Some(v1::Match { dscp: Some(64), ..Default::default() });
        assert_eq!(Flow::try_from(flow.clone()), Err(invalid("dscp", 64)));
        flow.r#match = Some(v1::Match { protocol: Some(9), ..Default::default() });
        assert_eq!(Flow::try_from(flow.clone()), Err(invalid("protocol", 9)));
        let ports = v1::PortRange { first: 9, last: 8 };
        flow.r#match = Some(v1::Match { ports: Some(ports), ..Default::default() });
        assert_eq!(Flow::try_from(flow), Err(invalid("ports", "9-8")));
        let hello =
            v1::Hello { node: "r1".into(), addresses: vec!["x".into()], ..Default::default() };
        assert_eq!(Announcement::try_from(&hello), Err(invalid("addresses", "x")));
    }
}
