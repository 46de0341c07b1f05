//! Conversions between the generated types and the model's.

mod announcement;
mod assignment;
mod flow;
mod telemetry;
mod traffic;

use std::net::Ipv6Addr;

use model::{Bandwidth, is_node_name};
use srv6::{SegmentList, Sid};

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
        /// Value.
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

#[cfg(test)]
mod tests {
    use model::{AnnouncedFunction, Announcement, Color, Flow, Policy, Protocol};

    use super::*;
    use crate::v1;

    #[test]
    fn messages_survive_a_round_trip() {
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
        let adjacency = |neighbor: &str| v1::Interface {
            adjacencies: vec![v1::Adjacency { neighbor: neighbor.into(), ..Default::default() }],
            ..Default::default()
        };
        let hello = |node: &str, neighbor: &str| {
            let interfaces = vec![adjacency(neighbor)];
            let hello = v1::Hello { node: node.into(), interfaces, ..Default::default() };
            Announcement::try_from(&hello).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(hello("Tokyo_East1", "r2"), Ok(()));
        assert_eq!(hello("a".repeat(11).as_str(), "r2"), Ok(()));
        let said = |field, value| Err(format!("`{field}`: `{value}` is not valid"));
        assert_eq!(hello(&"a".repeat(1 << 20), "r2"), said("node", "aaaaaaaaaaaa"));
        assert_eq!(hello("r 1", "r2"), said("node", "r 1"));
        assert_eq!(hello("r\n1", "r2"), said("node", "r\\n1"));
        assert_eq!(hello("r1", "../r2"), said("neighbor", "../r2"));
        assert_eq!(hello("", "r2"), Err("`node` is missing".into()));
    }

    #[test]
    fn an_invalid_value_is_refused_with_its_field() {
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
