//! The definition of an application's traffic: addresses, protocol, ports, DSCP.

use std::fmt;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Criterion for an application's path.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The path with the fewest hops whose available bandwidth covers the demand.
    #[default]
    Bandwidth,
    /// Always the IGP's own path, without additional headers.
    LowLatency,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bandwidth => "bandwidth",
            Self::LowLatency => "low-latency",
        })
    }
}

/// A transport protocol, with its number in the IPv4 Protocol and IPv6 Next Header fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP (6).
    Tcp,
    /// UDP (17).
    Udp,
    /// SCTP (132).
    Sctp,
    /// ICMP (1) for IPv4 and ICMPv6 (58) for IPv6.
    Icmp,
}

impl Protocol {
    /// The protocol's number in the header of the address family.
    pub fn number(self, ipv6: bool) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
            Self::Icmp if ipv6 => 58,
            Self::Icmp => 1,
        }
    }

    /// The protocol with this number, in either family.
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            6 => Some(Self::Tcp),
            17 => Some(Self::Udp),
            132 => Some(Self::Sctp),
            1 | 58 => Some(Self::Icmp),
            _ => None,
        }
    }

    /// True if the protocol has ports.
    pub fn has_ports(self) -> bool {
        self != Self::Icmp
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
            Self::Icmp => "icmp",
        })
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "tcp" => Ok(Self::Tcp),
            "udp" => Ok(Self::Udp),
            "sctp" => Ok(Self::Sctp),
            "icmp" => Ok(Self::Icmp),
            _ => Err(format!("`{text}` is not a protocol: use tcp, udp, sctp or icmp")),
        }
    }
}

/// A port or an inclusive range of ports: `5201` or `5201-5210`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortRange {
    /// First port of the range.
    pub first: u16,
    /// Last port of the range, not less than `first`.
    pub last: u16,
}

/// Parsing error of a port range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a port or a range of ports: write 5201 or 5201-5210, each from 1 to 65535")]
pub struct PortRangeError(String);

impl FromStr for PortRange {
    type Err = PortRangeError;

    fn from_str(text: &str) -> Result<Self, PortRangeError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self { first, last }),
            _ => Err(PortRangeError(text.into())),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl Serialize for PortRange {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // In YAML `ports: 5201` is a number, `ports: 5201-5210` a string.
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = PortRange;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a port such as 5201 or a range such as 5201-5210")
            }

            fn visit_u64<E: serde::de::Error>(self, port: u64) -> Result<PortRange, E> {
                port.to_string().parse().map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, port: i64) -> Result<PortRange, E> {
                port.to_string().parse().map_err(E::custom)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PortRange, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl schemars::JsonSchema for PortRange {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PortRange".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A port, or a range such as 5201-5210",
            "oneOf": [
                {"type": "integer", "minimum": 1, "maximum": 65535},
                {"type": "string", "pattern": "^[0-9]+(-[0-9]+)?$"},
            ],
        })
    }
}

/// A differentiated services code point, 0 to 63 (RFC 2474 section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dscp(u8);

/// Parsing error of a DSCP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a DSCP: use 0 to 63, or a name such as ef, af41 or cs1")]
pub struct DscpError(String);

impl Dscp {
    /// Numeric value of the code point, 0 to 63.
    pub fn value(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Dscp {
    type Error = DscpError;

    fn try_from(value: u8) -> Result<Self, DscpError> {
        if value < 64 { Ok(Self(value)) } else { Err(DscpError(value.to_string())) }
    }
}

impl FromStr for Dscp {
    type Err = DscpError;

    fn from_str(text: &str) -> Result<Self, DscpError> {
        let bad = || DscpError(text.into());
        if let Ok(value) = text.parse::<u8>() {
            return Self::try_from(value);
        }
        let digit = |at: usize| text.as_bytes().get(at).map(|c| c.wrapping_sub(b'0'));
        match text.to_ascii_lowercase().as_str() {
            // RFC 3246
            "ef" => Ok(Self(46)),
            "be" | "default" => Ok(Self(0)),
            // RFC 2597: af<class><drop precedence>
            name if name.starts_with("af") && name.len() == 4 => match (digit(2), digit(3)) {
                (Some(class @ 1..=4), Some(drop @ 1..=3)) => Ok(Self(class * 8 + drop * 2)),
                _ => Err(bad()),
            },
            // RFC 2474 section 4.2.2
            name if name.starts_with("cs") && name.len() == 3 => match digit(2) {
                Some(class @ 0..=7) => Ok(Self(class * 8)),
                _ => Err(bad()),
            },
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Dscp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.0)
    }
}

impl<'de> Deserialize<'de> for Dscp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Dscp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a DSCP from 0 to 63, or a name such as ef")
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Dscp, E> {
                value.to_string().parse().map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Dscp, E> {
                value.to_string().parse().map_err(E::custom)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Dscp, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl schemars::JsonSchema for Dscp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Dscp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A DSCP from 0 to 63, or a name such as ef, af41 or cs1",
            "oneOf": [
                {"type": "integer", "minimum": 0, "maximum": 63},
                {"type": "string", "pattern": "^([0-9]+|ef|be|default|af[1-4][1-3]|cs[0-7])$"},
            ],
        })
    }
}

/// Packets of one application in one address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Flow {
    /// Source prefix of the same family as `dst`; any source if absent.
    pub src: Option<IpNet>,
    /// Destination prefix.
    pub dst: IpNet,
    /// Transport protocol; any protocol if absent.
    pub protocol: Option<Protocol>,
    /// Source ports; present only with a protocol that has ports.
    pub src_ports: Option<PortRange>,
    /// Destination ports; present only with a protocol that has ports.
    pub dst_ports: Option<PortRange>,
    /// DSCP.
    pub dscp: Option<Dscp>,
}

impl Flow {
    /// True if the packets are IPv6.
    pub fn is_ipv6(&self) -> bool {
        matches!(self.dst, IpNet::V6(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_code_points() {
        assert_eq!("ef".parse::<Dscp>().unwrap().value(), 46);
        assert_eq!("af41".parse::<Dscp>().unwrap().value(), 34);
        assert_eq!("cs1".parse::<Dscp>().unwrap().value(), 8);
        for bad in ["64", "af51", "af14", "cs8", "", "efx"] {
            assert!(bad.parse::<Dscp>().is_err(), "{bad}");
        }
    }

    #[test]
    fn port_ranges() {
        assert_eq!("5201".parse(), Ok(PortRange { first: 5201, last: 5201 }));
        assert_eq!("1-65535".parse(), Ok(PortRange { first: 1, last: 65535 }));
        for bad in ["0", "2-1", "70000", "", "-", "http"] {
            assert!(bad.parse::<PortRange>().is_err(), "{bad}");
        }
    }
}
