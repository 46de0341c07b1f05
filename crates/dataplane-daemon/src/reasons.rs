//! Names and descriptions of the program's reason codes.

use bpf::srv6::types::reason;

/// The reason codes, each with a name for scripts and a description for people.
pub(crate) const REASONS: [(reason, &str, &str); 25] = [
    (reason::REASON_NO_ENTRY, "no-entry", "nothing here concerns the packet"),
    (reason::REASON_OTHER_STATION, "other-station", "the frame is for another address"),
    (reason::REASON_EXTENSION, "extension", "an extension header that is not an SRH"),
    (reason::REASON_TLV, "tlv", "the SRH has TLVs, such as an HMAC"),
    (reason::REASON_NO_SRH, "no-srh", "a packet to a SID without an SRH: OAM"),
    (reason::REASON_LAST_SEGMENT, "last-segment", "no segment is left, and the SID needs one"),
    (reason::REASON_HOP_LIMIT, "hop-limit", "the packet may pass no further router"),
    (reason::REASON_TOO_BIG, "too-big", "larger than the route takes"),
    (reason::REASON_NO_ROUTE, "no-route", "no route, or one for the kernel alone"),
    (reason::REASON_NO_NEIGHBOUR, "no-neighbour", "the next hop's address is not known yet"),
    (reason::REASON_OTHER_PORT, "other-port", "the route leaves by no port of the data plane"),
    (reason::REASON_NO_HEADROOM, "no-headroom", "the frame has no room for the outer header"),
    (reason::REASON_IRREGULAR, "irregular", "options, a special address or a bad checksum"),
    (reason::REASON_NO_POLICY, "no-policy", "the tenant has no policy for the destination"),
    (reason::REASON_MALFORMED, "malformed", "an SRH that contradicts itself"),
    (reason::REASON_TRUNCATED, "truncated", "shorter than its headers say"),
    (reason::REASON_WRONG_PAYLOAD, "wrong-payload", "the SID decapsulates something else"),
    (
        reason::REASON_TOO_BIG_TOLD,
        "too-big-reported",
        "too large with a header; the sender was notified",
    ),
    (reason::REASON_STATE_LOST, "state-lost", "from a service function, without its outer header"),
    (
        reason::REASON_LOCAL_ANSWER,
        "local-answer",
        "sent where only service functions' packets leave",
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
    (reason::REASON_EDGE, "edge", "to a SID, by a port where the SR domain ends"),
    (
        reason::REASON_FOREIGN_SOURCE,
        "foreign-source",
        "to a SID from outside of `sources`, or with one of them from outside",
    ),
    (reason::REASON_TENANT_SOURCE, "tenant-source", "from none of the tenant's `sources`"),
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
