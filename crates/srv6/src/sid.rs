//! Segment identifiers, locators and segment lists (RFC 8986 section 3, RFC 8402).

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use ipnet::Ipv6Net;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An SRv6 segment identifier: LOC:FUNCT:ARG in one IPv6 address (RFC 8986 section 3.1).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Sid(pub Ipv6Addr);

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The function values of Kaido's SIDs: the 16 bits after the locator.
pub mod function {
    /// End (RFC 8986 section 4.1).
    pub const END: u16 = 0x0001;
    /// End.DX4 with a lookup of the inner destination in the main table: equivalent to End.DT4, but
    /// available in kernels without VRF devices.
    pub const END_DX4: u16 = 0x00d4;
    /// End.DT6 in the main table (RFC 8986 section 4.6).
    pub const END_DT6: u16 = 0x00d6;
    /// End.X of the node's first adjacency (RFC 8986 section 4.2); the others follow.
    pub const END_X_FIRST: u16 = 0xe000;
    /// End.AN.NF of the node's first service function; the others follow.
    pub const END_AN_NF_FIRST: u16 = 0xf000;
}

/// A locator: the routed prefix of SIDs (RFC 8986 section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Locator(Ipv6Net);

/// Validation error of a locator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocatorError {
    /// Not an IPv6 prefix.
    #[error("`{0}` is not an IPv6 prefix such as fd00:0:1::/48")]
    NotAPrefix(String),
    /// The prefix has host bits set.
    #[error("`{0}` has host bits set: write {1}")]
    HostBits(String, Ipv6Net),
    /// The prefix leaves no room for a 16-bit function, or is so short that it would cover whole
    /// networks.
    #[error("the locator `{0}` must be /16 to /112: a 16-bit function follows it")]
    Length(String),
}

impl Locator {
    /// Creates the locator of `prefix`.
    pub fn new(prefix: Ipv6Net) -> Result<Self, LocatorError> {
        if prefix != prefix.trunc() {
            return Err(LocatorError::HostBits(prefix.to_string(), prefix.trunc()));
        }
        if !(16..=112).contains(&prefix.prefix_len()) {
            return Err(LocatorError::Length(prefix.to_string()));
        }
        Ok(Self(prefix))
    }

    /// Routed prefix.
    pub fn prefix(self) -> Ipv6Net {
        self.0
    }

    /// The SID of `function`, in the 16 bits that follow the locator.
    pub fn sid(self, function: u16) -> Sid {
        let shift = 128 - 16 - u32::from(self.0.prefix_len());
        Sid(Ipv6Addr::from(u128::from(self.0.network()) | u128::from(function) << shift))
    }

    /// True if `sid` is in this locator.
    pub fn contains(self, sid: Sid) -> bool {
        self.0.contains(&sid.0)
    }
}

impl FromStr for Locator {
    type Err = LocatorError;

    fn from_str(text: &str) -> Result<Self, LocatorError> {
        Self::new(text.parse().map_err(|_| LocatorError::NotAPrefix(text.into()))?)
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Locator {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Locator {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Locator".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "An SRv6 locator, such as fd00:0:1::/48",
            "pattern": "^[0-9a-fA-F:]+/[0-9]+$",
        })
    }
}

/// The SIDs of a path, in the order in which packets visit them. The SRH encodes them in reverse
/// (RFC 8754 section 2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SegmentList(pub Vec<Sid>);

impl SegmentList {
    /// Maximum number of SIDs, given the headroom above the inner MTU on a lab's links
    /// (`SRV6_HEADROOM`).
    pub const MAX: usize = 12;

    /// Maximum number of SIDs in a list with service functions, which have to store the SRH
    /// (docs/functions.md).
    pub const MAX_SERVED: usize = 10;

    /// Size in bytes of the headers that H.Encaps adds to the inner packet: IPv6 header, SRH, 16
    /// per SID (RFC 8986 section 5.1).
    pub fn overhead(&self) -> u16 {
        // The cast is safe: the SRH's length field allows at most 127 SIDs.
        40 + 8 + 16 * self.0.len() as u16
    }
}

impl fmt::Display for SegmentList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<")?;
        for (at, sid) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            sid.fmt(f)?;
        }
        f.write_str(">")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_follows_its_locator() {
        let locator: Locator = "fd00:0:1::/48".parse().unwrap();
        assert_eq!(locator.sid(function::END).to_string(), "fd00:0:1:1::");
        assert_eq!(locator.sid(function::END_DX4).to_string(), "fd00:0:1:d4::");
        assert!(locator.contains(locator.sid(0xffff)));
        let longest: Locator = "fd00::/112".parse().unwrap();
        assert_eq!(longest.sid(1).to_string(), "fd00::1");
    }

    #[test]
    fn a_locator_is_a_clean_prefix_with_room_for_a_function() {
        assert!(matches!("fd00::1/48".parse::<Locator>(), Err(LocatorError::HostBits(..))));
        assert!(matches!("fd00::/120".parse::<Locator>(), Err(LocatorError::Length(_))));
        assert!(matches!("10.0.0.0/8".parse::<Locator>(), Err(LocatorError::NotAPrefix(_))));
    }
}
