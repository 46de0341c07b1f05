//! An application: a definition of its packets, and its requirements on their path.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use srv6::SegmentList;

use crate::{Bandwidth, Class, Dscp, PortRange, Protocol, is_lab_name, is_node_name};

/// Destination of an application's packets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Destination {
    /// All addresses of a node.
    Node(String),
    /// The addresses of a prefix.
    Prefix(IpNet),
}

/// Parsing error of a destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// Neither a node name nor an address nor a prefix.
    #[error("`{0}` is not a destination: write a node's name, or a prefix such as 10.0.5.0/24")]
    Unreadable(String),
    /// The prefix has host bits set.
    #[error("`{0}` has host bits set: write {1}")]
    HostBits(String, IpNet),
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        if is_node_name(text) {
            return Ok(Self::Node(text.into()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Prefix(address.into()));
        }
        let bad = |_| DestinationError::Unreadable(text.into());
        let prefix: IpNet = text.parse().map_err(bad)?;
        if prefix != prefix.trunc() {
            return Err(DestinationError::HostBits(text.into(), prefix.trunc()));
        }
        Ok(Self::Prefix(prefix))
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(name) => name.fmt(f),
            Self::Prefix(prefix) => prefix.fmt(f),
        }
    }
}

impl Serialize for Destination {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Destination {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// An application, as described by its owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Application {
    /// Name of the application, unique in its lab.
    pub name: String,
    /// Sending node.
    pub from: String,
    /// Destination of the packets.
    #[schemars(with = "String")]
    pub to: Destination,
    /// Transport protocol; any protocol if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Source ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src_ports: Option<PortRange>,
    /// Destination ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_ports: Option<PortRange>,
    /// DSCP of its packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Dscp>,
    /// Requested layer-2 bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demand: Option<Bandwidth>,
    /// Criterion for its path.
    #[serde(default)]
    pub class: Class,
    /// Service functions that its packets traverse, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<String>,
}

/// Validation error of an application, independent of the network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplicationError {
    /// The name is not `[a-z][a-z0-9-]{0,30}`.
    #[error(
        "`{0}` is not an application name: use up to 31 of a-z, 0-9 and -, beginning with a letter"
    )]
    Name(String),
    /// The sender is not a valid node name.
    #[error("`{0}` is not a node name: use the name of the node that sends")]
    From(String),
    /// The sender and the receiver are the same node.
    #[error("`{0}` sends to itself: write another node after `to`")]
    ToItself(String),
    /// Ports without a protocol, or with a protocol that has no ports.
    #[error("ports need a protocol that has ports: write protocol tcp, udp or sctp")]
    Ports,
    /// Source ports without a protocol, or with a protocol that has no ports.
    #[error("source ports need a protocol that has ports: write protocol tcp, udp or sctp")]
    SourcePorts,
    /// The class `bandwidth` without a demand.
    #[error("the class `bandwidth` needs a demand: write one such as 50mbit, or class low-latency")]
    NoDemand,
    /// Functions with the class `low-latency`, which leaves routing to the IGP.
    #[error("functions need the class `bandwidth`: write it, and a demand such as 50mbit")]
    Functions,
    /// An invalid function name.
    #[error("`{0}` is not a function name: use up to 31 of a-z, 0-9 and -")]
    Function(String),
    /// A duplicate function.
    #[error("the function `{0}` is listed twice: remove one of the two")]
    Twice(String),
    /// Too many functions for a segment list.
    #[error("{0} functions are too many segments: name {1} at most")]
    TooManyFunctions(usize, usize),
}

impl Application {
    /// Maximum return value of [`Application::specificity`].
    pub const MAX_SPECIFICITY: u32 = 8;

    /// Specificity of the packet filter: a packet that matches several applications belongs to the
    /// most specific one.
    pub fn specificity(&self) -> u32 {
        let to_one = match self.to {
            Destination::Node(_) => true,
            Destination::Prefix(prefix) => prefix.prefix_len() == prefix.max_prefix_len(),
        };
        u32::from(to_one)
            + u32::from(self.protocol.is_some())
            + 2 * u32::from(self.dst_ports.is_some())
            + 2 * u32::from(self.src_ports.is_some())
            + 2 * u32::from(self.dscp.is_some())
    }

    /// Validates the application without knowledge of the network.
    pub fn validate(&self) -> Result<(), ApplicationError> {
        self.errors().into_iter().next().map_or(Ok(()), Err)
    }

    /// All errors that [`validate`](Self::validate) detects.
    pub fn errors(&self) -> Vec<ApplicationError> {
        let mut errors = Vec::new();
        if !is_lab_name(&self.name) {
            errors.push(ApplicationError::Name(self.name.clone()));
        }
        if !is_node_name(&self.from) {
            errors.push(ApplicationError::From(self.from.clone()));
        }
        if matches!(&self.to, Destination::Node(to) if *to == self.from) {
            errors.push(ApplicationError::ToItself(self.from.clone()));
        }
        let no_ports = !self.protocol.is_some_and(Protocol::has_ports);
        if no_ports && self.dst_ports.is_some() {
            errors.push(ApplicationError::Ports);
        }
        if no_ports && self.src_ports.is_some() {
            errors.push(ApplicationError::SourcePorts);
        }
        if self.class == Class::Bandwidth && self.demand.is_none() {
            errors.push(ApplicationError::NoDemand);
        }
        let functions = &self.functions;
        if self.class == Class::LowLatency && !functions.is_empty() {
            errors.push(ApplicationError::Functions);
        }
        let most = SegmentList::MAX_SERVED - 1;
        // A longer list is an error below.
        for (at, function) in functions.iter().enumerate().take(most) {
            if !is_lab_name(function) {
                errors.push(ApplicationError::Function(function.clone()));
            }
            if functions[..at].contains(function) {
                errors.push(ApplicationError::Twice(function.clone()));
            }
        }
        // The last SID is needed for decapsulation.
        if functions.len() > most {
            errors.push(ApplicationError::TooManyFunctions(functions.len(), most));
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application() -> Application {
        Application {
            name: "bulk".into(),
            from: "h3".into(),
            to: Destination::Node("h2".into()),
            protocol: None,
            src_ports: None,
            dst_ports: None,
            dscp: None,
            demand: Some(Bandwidth::from_mbps(50)),
            class: Class::Bandwidth,
            functions: Vec::new(),
        }
    }

    #[test]
    fn survives_being_stored() {
        let application = Application {
            to: "10.0.5.0/24".parse().unwrap(),
            dscp: "ef".parse().ok(),
            ..application()
        };
        let text = serde_json::to_string(&application).unwrap();
        assert_eq!(
            text,
            r#"{"name":"bulk","from":"h3","to":"10.0.5.0/24","dscp":46,"demand":"50mbit","class":"bandwidth"}"#
        );
        assert_eq!(serde_json::from_str::<Application>(&text).unwrap(), application);
    }

    #[test]
    fn destinations() {
        assert_eq!("h2".parse(), Ok(Destination::Node("h2".into())));
        assert_eq!("fd00::1".parse::<Destination>().unwrap().to_string(), "fd00::1/128");
        assert!(matches!(
            "10.0.0.1/24".parse::<Destination>(),
            Err(DestinationError::HostBits(..))
        ));
        assert!(matches!("h 2".parse::<Destination>(), Err(DestinationError::Unreadable(_))));
    }

    #[test]
    fn finds_everything_that_is_wrong() {
        assert_eq!(application().validate(), Ok(()));
        let ports: PortRange = "80".parse().unwrap();
        let wrong = Application {
            name: "Bulk".into(),
            from: "h2".into(),
            protocol: Some(Protocol::Icmp),
            src_ports: Some(ports),
            dst_ports: Some(ports),
            demand: None,
            ..application()
        };
        assert_eq!(
            wrong.errors(),
            [
                ApplicationError::Name("Bulk".into()),
                ApplicationError::ToItself("h2".into()),
                ApplicationError::Ports,
                ApplicationError::SourcePorts,
                ApplicationError::NoDemand,
            ]
        );
        let quiet = Application { class: Class::LowLatency, demand: None, ..application() };
        assert_eq!(quiet.validate(), Ok(()));
    }
}
