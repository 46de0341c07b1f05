/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Reasons and counters. */
#ifndef KAIDO_ABI_COUNTERS_H
#define KAIDO_ABI_COUNTERS_H

#include <linux/types.h>
#include "limits.h"

/* The reason why the program did not forward a packet. Each reason has two counters: one for
 * packets left to the kernel, which then decides, and one for packets dropped because the kernel
 * lacks the entry and would leak the packet. */
enum reason {
	/* No entry matches. Most packets addressed to the host itself have this reason. */
	REASON_NO_ENTRY,
	/* The destination MAC address is a group address or that of another station. */
	REASON_OTHER_STATION,
	/* An extension header other than a segment routing header. */
	REASON_EXTENSION,
	/* The segment routing header has TLVs. The kernel verifies the HMAC. */
	REASON_TLV,
	/* The segment routing header is missing: OAM to a SID (RFC 9259). */
	REASON_NO_SRH,
	/* Segments Left is 0 and the SID has no flavor that handles this. */
	REASON_LAST_SEGMENT,
	/* Hop limit exceeded. The kernel sends the ICMP error. */
	REASON_HOP_LIMIT,
	/* Larger than the route's MTU. The kernel sends the ICMP error. */
	REASON_TOO_BIG,
	/* No route, a local route, or a route that only the kernel can follow. */
	REASON_NO_ROUTE,
	/* The link-layer address of the next hop is not resolved yet. */
	REASON_NO_NEIGHBOR,
	/* The egress interface is not a port of the data plane, or no longer exists. */
	REASON_OTHER_PORT,
	/* The frame has no headroom for the outer header. */
	REASON_NO_HEADROOM,
	/* A header needs more than forwarding: options, a special address, a bad checksum. */
	REASON_IRREGULAR,
	/* The tenant has no policy for the destination. */
	REASON_NO_POLICY,
	/* Inconsistent segment routing header (RFC 8754 section 2). */
	REASON_MALFORMED,
	/* The packet is shorter than its headers indicate. */
	REASON_TRUNCATED,
	/* The SID decapsulates another type of payload. */
	REASON_WRONG_PAYLOAD,
	/* Larger than the route's MTU with an outer header. The program notified the sender. */
	REASON_TOO_BIG_NOTIFIED,
	/* A service function returned a packet too late: later packets have overwritten its outer
	 * header. */
	REASON_STATE_LOST,
	/* A local reply to the inner packet of a service function without a return policy. Also any
	 * other packet that leaves through an interface reserved for such inner packets, sent by this
	 * node or forwarded for another. */
	REASON_LOCAL_ANSWER,
	/* The interface to a service function, or the return interface, is down or missing. */
	REASON_FUNCTION_DOWN,
	/* The kernel requires an HMAC on this port (seg6_require_hmac), and the SRH has none. */
	REASON_NO_HMAC,
	/* Addressed to a SID, received on a port at the edge of the SR domain (RFC 8754 section
	 * 5.1). */
	REASON_EDGE,
	/* Addressed to a SID, with a source outside the SR domain; or received on a port at the
	 * edge of the domain or from a tenant, with a source inside the domain. */
	REASON_FOREIGN_SOURCE,
	/* A tenant's packet with a source that does not belong to the tenant. */
	REASON_TENANT_SOURCE,
	/* Not a G-PDU of GTP-U, for a behavior of the mobile user plane (RFC 9433). The kernel gets other
	 * messages of GTP-U, such as echo requests. */
	REASON_GTP,
	REASONS,
};

_Static_assert(REASONS * 2 <= LIMIT_REASONS, "room for every reason twice");

/* Packet and byte count of one CPU. */
struct count {
	__u64 packets;
	__u64 bytes; /* layer 3, as received */
};
_Static_assert(sizeof(struct count) == 16, "no hidden padding");

#endif
