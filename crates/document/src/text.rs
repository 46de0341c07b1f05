//! Scalar values: addresses and prefixes.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Implements `Deserialize` and `JsonSchema` for a scalar type that implements `FromStr`: the type,
/// its description for messages, and the pattern of its text. The calling crate depends on `serde`
/// and `schemars`.
#[macro_export]
macro_rules! from_text {
    ($type:ident, $what:literal, $pattern:literal) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($what)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Visitor)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": $what,
                    "pattern": $pattern,
                })
            }
        }
    };
}
/// Parses a prefix without host bits.
pub fn prefix(text: &str, example: &str) -> Result<IpNet, String> {
    let prefix = text
        .parse::<IpNet>()
        .map_err(|_| format!("`{text}` is not a prefix: write one such as {example}"))?;
    if prefix != prefix.trunc() {
        return Err(format!("`{text}` has bits set behind its length: write {}", prefix.trunc()));
    }
    Ok(prefix)
}

/// An IPv4 prefix.
#[derive(Debug, Clone, Copy)]
pub struct Prefix4(pub Ipv4Net);

impl FromStr for Prefix4 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match prefix(text, "10.9.0.0/24")? {
            IpNet::V4(prefix) => Ok(Self(prefix)),
            IpNet::V6(_) => {
                Err(format!("`{text}` is not an IPv4 prefix: write one such as 10.9.0.0/24"))
            }
        }
    }
}
from_text!(Prefix4, "an IPv4 prefix such as 10.9.0.0/24", r"^[0-9.]+/[0-9]+$");

/// An IPv6 prefix.
#[derive(Debug, Clone, Copy)]
pub struct Prefix6(pub Ipv6Net);

impl FromStr for Prefix6 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match prefix(text, "fd02:9::/64")? {
            IpNet::V6(prefix) => Ok(Self(prefix)),
            IpNet::V4(_) => {
                Err(format!("`{text}` is not an IPv6 prefix: write one such as fd02:9::/64"))
            }
        }
    }
}
from_text!(Prefix6, "an IPv6 prefix such as fd02:9::/64", r"^[0-9a-fA-F:.]+/[0-9]+$");

/// A prefix of either family.
#[derive(Debug, Clone, Copy)]
pub struct Prefix(pub IpNet);

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        prefix(text, "10.0.5.0/24 or fd02:5::/64").map(Self)
    }
}
from_text!(Prefix, "a prefix such as 10.0.5.0/24", r"^[0-9a-fA-F:.]+/[0-9]+$");

/// A prefix of either family, or a single address.
#[derive(Debug, Clone, Copy)]
pub struct PrefixOrAddress(pub IpNet);

impl FromStr for PrefixOrAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<IpAddr>() {
            Ok(address) => Ok(Self(address.into())),
            Err(_) => prefix(text, "10.0.5.0/24, or an address").map(Self),
        }
    }
}
from_text!(
    PrefixOrAddress,
    "a prefix such as 10.0.5.0/24, or an address",
    r"^[0-9a-fA-F:.]+(/[0-9]+)?$"
);

/// An address of either family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address(pub IpAddr);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| {
            format!(
                "`{text}` is not an address: write one such as 10.255.0.1 or fd01::1, without a \
                 length"
            )
        })
    }
}
from_text!(Address, "an address such as 10.255.0.1", r"^[0-9a-fA-F:.]+$");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_where_they_say() {
        assert!("10.0.0.1/8".parse::<Prefix4>().unwrap_err().contains("write 10.0.0.0/8"));
        assert!("fd00::/8".parse::<Prefix4>().unwrap_err().contains("not an IPv4 prefix"));
    }
}
