//! Names and descriptions of the program's reason codes.

use bpf::srv6::types::reason;

/// The reason codes, each with a name for scripts and a description for people.
pub(crate) const REASONS: [(reason, &str, &str); 26] = [
    (reason::REASON_NO_ENTRY, "no-entry", "no entry matches"),
    (
        reason::REASON_OTHER_STATION,
        "other-station",
        "the destination MAC address is another host's or a group address",
    ),
    (reason::REASON_EXTENSION, "extension", "an extension header that is not an SRH"),
    (reason::REASON_TLV, "tlv", "the SRH has TLVs, such as an HMAC"),
    (reason::REASON_NO_SRH, "no-srh", "a packet to a SID without an SRH: OAM"),
    (
        reason::REASON_LAST_SEGMENT,
        "last-segment",
        "Segments Left is 0, and the SID needs a segment",
    ),
    (reason::REASON_HOP_LIMIT, "hop-limit", "hop limit exceeded"),
    (reason::REASON_TOO_BIG, "too-big", "larger than the route's MTU"),
    (reason::REASON_NO_ROUTE, "no-route", "no route, or a route that only the kernel can follow"),
    (reason::REASON_NO_NEIGHBOR, "no-neighbor", "the next hop's address is not known yet"),
    (
        reason::REASON_OTHER_PORT,
        "other-port",
        "the egress interface is not a port of the data plane",
    ),
    (reason::REASON_NO_HEADROOM, "no-headroom", "the frame has no room for the outer header"),
    (reason::REASON_IRREGULAR, "irregular", "options, a special address or a bad checksum"),
    (reason::REASON_NO_POLICY, "no-policy", "the tenant has no policy for the destination"),
    (reason::REASON_MALFORMED, "malformed", "inconsistent SRH"),
    (reason::REASON_TRUNCATED, "truncated", "shorter than its headers indicate"),
    (
        reason::REASON_WRONG_PAYLOAD,
        "wrong-payload",
        "payload type that the SID does not decapsulate",
    ),
    (
        reason::REASON_TOO_BIG_NOTIFIED,
        "too-big-reported",
        "too large with a header; the sender was notified",
    ),
    (
        reason::REASON_STATE_LOST,
        "state-lost",
        "returned by a service function after its outer header was overwritten",
    ),
    (
        reason::REASON_LOCAL_ANSWER,
        "local-answer",
        "local reply without a return policy, or sent through an interface reserved for service \
         functions",
    ),
    (
        reason::REASON_FUNCTION_DOWN,
        "function-down",
        "the interface to the service function is down",
    ),
    (
        reason::REASON_NO_HMAC,
        "no-hmac",
        "the SRH has no HMAC, which the kernel requires on this port",
    ),
    (
        reason::REASON_EDGE,
        "edge",
        "to a SID, received at the edge of the SR domain or from a tenant",
    ),
    (
        reason::REASON_FOREIGN_SOURCE,
        "foreign-source",
        "to a SID from outside `sources`, or from an edge port or tenant with a source inside",
    ),
    (reason::REASON_TENANT_SOURCE, "tenant-source", "source not in the tenant's `sources`"),
    (reason::REASON_GTP, "gtp", "no G-PDU of GTP-U, for a behavior of the mobile user plane"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_words() {
        assert_eq!(REASONS.len(), reason::REASONS.0 as usize);
        for (at, (number, ..)) in REASONS.iter().enumerate() {
            assert_eq!(number.0 as usize, at);
        }
    }
}
