/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The segment routing header (RFC 8754 section 2) and its validation.
 *
 *  0                   1                   2                   3
 * +---------------+---------------+---------------+---------------+
 * |  Next Header  |  Hdr Ext Len  |  Routing Type | Segments Left |
 * +---------------+---------------+---------------+---------------+
 * |  Last Entry   |     Flags     |              Tag              |
 * +---------------+---------------+---------------+---------------+
 * |  Segment List[0], the last segment of the path: 16 octets     |
 */
#ifndef KAIDO_SRV6_SRH_H
#define KAIDO_SRV6_SRH_H

#include "frame.h"

#define ROUTING_SRH 4

struct srh {
	__u8 next_header;
	__u8 length; /* in units of 8 octets, not including the first 8 */
	__u8 type;
	__u8 segments_left;
	__u8 last_entry;
	__u8 flags;
	__be16 tag;
};

/* Result of find_srh(). The program parses a single SRH directly after the IPv6 header. */
enum srh_found {
	SRH_NONE, /* the IPv6 header is followed by another header */
	SRH_GOOD, /* a complete SRH without TLVs */
	SRH_OTHER, /* invalid or not supported; see the reason */
};

/* Returns the next segment. `segments_left` must not be 0. It is not decremented first, because the
 * Linux 6.1 verifier cannot prove that the result is not negative. */
static __always_inline const void *segment_of(const struct srh *srh)
{
	return (const void *)srh + 16 * (__u32)srh->segments_left - 8;
}

/* True for extension headers that the kernel skips when it searches for a header. */
static __always_inline int is_extension(__u8 protocol)
{
	return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING ||
	       protocol == IPPROTO_FRAGMENT || protocol == IPPROTO_AH ||
	       protocol == IPPROTO_DSTOPTS;
}

/*
 * Parses the header after the IPv6 header at `ip`.
 *
 * SRH_GOOD means that the segment list is complete and ends with the header, and that Segments Left
 * is at most Last Entry, or one more for a reduced list (RFC 8754 section 4.1.1). Such an SRH never
 * has an HMAC, so it is rejected if the kernel requires one (section 2.1.2): the kernel drops the
 * packet at the same point, whatever follows the header.
 */
static __always_inline enum srh_found find_srh(const struct frame *frame, const struct ipv6hdr *ip,
					       enum reason *reason)
{
	const struct srh *srh = (const void *)(ip + 1);
	const void *end = end_of(frame);

	if (ip->nexthdr != IPPROTO_ROUTING) {
		*reason = is_extension(ip->nexthdr) ? REASON_EXTENSION : REASON_NO_SRH;
		return SRH_NONE;
	}
	if ((void *)(srh + 1) > end) {
		*reason = REASON_TRUNCATED;
		return SRH_OTHER;
	}
	if (srh->type != ROUTING_SRH) {
		*reason = REASON_EXTENSION;
		return SRH_OTHER;
	}
	__u32 list = 2 * (srh->last_entry + 1);

	if (srh->length != list || srh->segments_left > srh->last_entry + 1) {
		/* A header longer than its segment list has TLVs. */
		*reason = srh->length > list && srh->segments_left <= srh->last_entry + 1 ?
				  REASON_TLV :
				  REASON_MALFORMED;
		return SRH_OTHER;
	}
	if ((void *)(srh + 1) + 8 * srh->length > end) {
		*reason = REASON_TRUNCATED;
		return SRH_OTHER;
	}
	if (frame->port->flags & PORT_HMAC) {
		*reason = REASON_NO_HMAC;
		return SRH_OTHER;
	}
	return SRH_GOOD;
}

/* Disposes of a packet without a usable next segment in its SRH. The kernel verifies HMACs and
 * supports more extension headers. Like this program, it drops inconsistent headers. */
static __always_inline int leave_srh(const struct frame *frame, enum reason reason, int in_kernel)
{
	if (reason == REASON_MALFORMED)
		return drop(frame, reason);
	return leave(frame, reason, in_kernel);
}

#endif
