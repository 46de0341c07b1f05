//! Flows, policies and applications.

use ipnet::IpNet;

use model::{
    Application, Bandwidth, Class, Color, Destination, Dscp, Flow, Policy, PortRange, Protocol,
};

use super::{ConvertError, bandwidth, invalid, parse, sids_from_text, sids_to_text};
use crate::v1;

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
