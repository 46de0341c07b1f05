//! Names and their notation.

use ipnet::Ipv6Net;

/// Help text for invalid names of tenants and policies.
pub(crate) const NAME_HELP: &str = "use up to 31 of a-z, 0-9 and -, beginning with a letter";

/// Returns the usual notation of a SID, without its length if that is 128.
pub(crate) fn short(sid: Ipv6Net) -> String {
    if sid.prefix_len() == 128 { sid.addr().to_string() } else { sid.to_string() }
}
