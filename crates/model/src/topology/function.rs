//! Service functions of routers.

use std::fmt;

use ipnet::Ipv6Net;
use schemars::JsonSchema;
use serde::Serialize;

use crate::dataplane::Health;
use srv6::Sid;

/// A router's service function (End.AN.NF).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Function {
    /// Function name; instances of the same name on other nodes are interchangeable.
    pub name: String,
    /// Prefix of its SID.
    pub prefix: Ipv6Net,
    /// The SID, including the argument.
    pub sid: Sid,
    /// The argument, which becomes the packets' mark.
    pub mark: u32,
    /// Rules that are loaded with `nft -f` when the lab starts.
    pub rules: Option<String>,
    /// File that contains the rules, if they are not inline.
    pub file: Option<String>,
    /// Health check of the function.
    pub health: Option<Health>,
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.name, self.sid)
    }
}
