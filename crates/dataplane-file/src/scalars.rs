//! Scalar values of the grammar: addresses and SIDs.

use std::str::FromStr;

use document::{from_text, prefix};
use ipnet::{IpNet, Ipv6Net};

/// An IPv6 address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ipv6(pub(crate) std::net::Ipv6Addr);

impl FromStr for Ipv6 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse()
            .map(Self)
            .map_err(|_| format!("`{text}` is not an IPv6 address: write one such as fd00:0:2::1"))
    }
}
from_text!(Ipv6, "an IPv6 address such as fd00:0:2::1", r"^[0-9a-fA-F:.]+$");

/// A SID, or its prefix if it has an argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SidPrefix(pub(crate) Ipv6Net);

impl FromStr for SidPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<std::net::Ipv6Addr>() {
            return Ok(Self(address.into()));
        }
        match prefix(text, "fd00:0:1:1:: or fd00:1:1::/48") {
            Ok(IpNet::V6(prefix)) => Ok(Self(prefix)),
            Err(error) if text.contains('/') => Err(error),
            // YAML takes the last colon as its own syntax.
            _ if format!("{text}:").parse::<std::net::Ipv6Addr>().is_ok() => {
                Err(format!("`{text}` is not a SID: write \"{text}:\" in quotes, then a colon"))
            }
            _ => Err(format!(
                "`{text}` is not a SID: write one such as fd00:0:1:1:: or fd00:1:1::/48"
            )),
        }
    }
}
from_text!(SidPrefix, "a SID such as fd00:0:1:1:: or fd00:1:1::/48", r"^[0-9a-fA-F:.]+(/[0-9]+)?$");
