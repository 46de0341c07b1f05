/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The segment routing header (RFC 8754 section 2), and what is in front of an inner packet.
 *
 *  0                   1                   2                   3
 * +---------------+---------------+---------------+---------------+
 * |  Next Header  |  Hdr Ext Len  |  Routing Type | Segments Left |
 * +---------------+---------------+---------------+---------------+
 * |  Last Entry   |     Flags     |              Tag              |
 * +---------------+---------------+---------------+---------------+
 * |  Segment List[0], the last to be visited: 16 bytes            |
 */
#ifndef KAIDO_SRV6_SRH_H
#define KAIDO_SRV6_SRH_H

#include "frame.h"

#define ROUTING_SRH 4

struct srh {
	__u8 next_header;
	__u8 length; /* in units of 8 bytes, the first 8 not counted */
	__u8 type;
	__u8 segments_left;
	__u8 last_entry;
	__u8 flags;
	__be16 tag;
};

/* The routing headers that the program reads: one SRH right behind the IPv6 header. */
enum srh_found {
	SRH_NONE, /* another header, or none, follows the IPv6 header */
	SRH_GOOD, /* a whole SRH without TLVs */
	SRH_OTHER, /* the reason says what */
};

/* The segment that `segments_left`, which is not 0, says comes next. Its number is not reduced by
 * one first: Linux 6.1 cannot tell that the result is not negative. */
static __always_inline const void *segment_of(const struct srh *srh)
{
	return (const void *)srh + 16 * (__u32)srh->segments_left - 8;
}

/* Headers between which the kernel looks for the one that it wants. */
static __always_inline int is_extension(__u8 protocol)
{
	return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING ||
	       protocol == IPPROTO_FRAGMENT || protocol == IPPROTO_AH ||
	       protocol == IPPROTO_DSTOPTS;
}

/*
 * Looks behind the IPv6 header at `ip`. SRH_GOOD means that the segment list is complete, ends with
 * the header, and has the segment that is left, or one less if it is reduced (section 4.1.1).
 * It never has an HMAC, so it is not good where the kernel requires one (section 2.1.2): the kernel
 * drops it in the same place, whatever follows the header.
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
		/* What is longer than its list has TLVs behind it. */
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

/* What an SRH that has no usable next segment means for the packet: the kernel verifies HMACs and
 * knows more extension headers; it drops as we do what contradicts itself. */
static __always_inline int leave_srh(const struct frame *frame, enum reason reason, int in_kernel)
{
	if (reason == REASON_MALFORMED)
		return drop(frame, reason);
	return leave(frame, reason, in_kernel);
}

#endif
