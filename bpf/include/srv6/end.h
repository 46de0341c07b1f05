/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * End, End.X and End.T (RFC 8986 sections 4.1 to 4.3), PSP (section 4.16.1) and NEXT-C-SID (RFC
 * 9800 section 4.1): forwards a packet to its next segment.
 *
 * Functions return an XDP action unless stated otherwise. Addresses are in wire byte order, `struct
 * bits` is in host byte order.
 *
 * The three behaviors differ in the lookup: the next segment, a neighbor, or the next segment in a
 * specific table.
 */
#ifndef KAIDO_SRV6_END_H
#define KAIDO_SRV6_END_H

#include "found.h"
#include "send.h"
#include "srh.h"

/* True for End, End.X and End.T. No record has the behavior 0; with it, the test is a single
 * comparison. */
static __always_inline int advances(__u32 behavior)
{
	switch (behavior) {
	case BEHAVIOR_NONE:
	case BEHAVIOR_END:
	case BEHAVIOR_END_X:
	case BEHAVIOR_END_T:
		return 1;
	default:
		return 0;
	}
}

/* A 128-bit number in host byte order, as two words. */
struct bits {
	__u64 high;
	__u64 low;
};

static __always_inline struct bits shifted_left(struct bits bits, __u32 by)
{
	if (by >= 128)
		return (struct bits){0, 0};
	if (by >= 64)
		return (struct bits){bits.low << (by - 64), 0};
	if (!by)
		return bits;
	return (struct bits){bits.high << by | bits.low >> (64 - by), bits.low << by};
}

/*
 * Computes the next compressed SID (RFC 9800 section 4.1.1): the locator block remains, the
 * argument moves to the front, and zeros follow. Returns 0 if the argument is zero: the next
 * segment is then in the SRH.
 */
static __always_inline int next_csid(const struct sid *sid, struct bits *address)
{
	__u32 block = (sid->csid >> 4) * 8, node = (sid->csid & 15) * 8;
	struct bits argument = shifted_left(*address, block + node);

	if (!argument.high && !argument.low)
		return 0;
	/* Keep the block. All other bits come from the shifted address. */
	__u64 block_high = block >= 64 ? ~0ull : block ? ~0ull << (64 - block) : 0;
	__u64 block_low = block > 64 && block < 128 ? ~0ull << (128 - block) : 0;
	struct bits moved = shifted_left(*address, node);

	address->high = (address->high & block_high) | (moved.high & ~block_high);
	address->low = (address->low & block_low) | (moved.low & ~block_low);
	return 1;
}

/* Returns the adjacency for a packet with IPv6 header `ip`, with the next header `protocol` that it
 * leaves with, and with next segment `dst0`, `dst1`; or null with `*reason` set. */
static __always_inline const struct adjacency *route_onwards(const struct frame *frame,
							     const struct sid *sid,
							     const struct ipv6hdr *ip,
							     __u8 protocol, __u64 dst0,
							     __u64 dst1, int *reason)
{
	if (sid->behavior == BEHAVIOR_END_X) {
		/* The lookup of the neighbor would not detect a multicast destination. */
		if (is_special6(dst0)) {
			*reason = REASON_IRREGULAR;
			return 0;
		}
		dst0 = sid->params.next_hop6[0];
		dst1 = sid->params.next_hop6[1];
	}
	return route(frame, dst0, dst1, high(&ip->saddr), low(&ip->saddr),
		     ROUTE_FLOW(*(__be32 *)ip & FLOW_MASK, protocol),
		     table_of(frame, sid, AF_INET6), reason);
}

/* Removes the SRH and sends the packet. `srh` is the length of the SRH in bytes. */
static __always_inline int pop_and_send(const struct frame *frame, const struct sid *sid,
					const struct adjacency *adjacency, __u32 srh, __u64 dst0,
					__u64 dst1, __u8 next_header)
{
	const struct ipv6hdr *old = data_of(frame) + ETH_HLEN;
	struct tags tags = tags_of(adjacency);
	struct ipv6hdr copy;

	if ((void *)(old + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	copy = *old;
	if (cut_head(frame, srh, tags))
		return leave(frame, REASON_NO_HEADROOM, is_in_kernel(sid));
	count_sid(frame, sid);
	struct ipv6hdr *ip = data_of(frame) + link_header(tags);

	if ((void *)(ip + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	*ip = copy;
	ip->nexthdr = next_header;
	ip->payload_len = bpf_htons(bpf_ntohs(copy.payload_len) - srh);
	ip->hop_limit--;
	((__u64 *)&ip->daddr)[0] = dst0;
	((__u64 *)&ip->daddr)[1] = dst1;
	return send(frame, adjacency, tags, bpf_htons(ETH_P_IPV6));
}

/* Forwards to the next segment. `srh` is null if the address contains the segment (NEXT-C-SID).
 * `is_last`: nonzero if no segment follows it. `step`: subtracted from Segments Left. */
static __always_inline int forward(const struct frame *frame, const struct sid *sid,
				   const struct srh *srh, int is_last, __u8 step, __u64 dst0,
				   __u64 dst1)
{
	const struct ipv6hdr *ip = data_of(frame) + ETH_HLEN;
	__u32 removed = 0;
	int reason;

	if ((void *)(ip + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	if (ip->hop_limit <= 1)
		return leave(frame, REASON_HOP_LIMIT, is_in_kernel(sid));
	__u8 protocol = ip->nexthdr;

	if (srh && is_last && sid->flags & SID_PSP) {
		removed = 8 + 8 * srh->length;
		protocol = srh->next_header;
	}
	const struct adjacency *adjacency =
		route_onwards(frame, sid, ip, protocol, dst0, dst1, &reason);

	if (!adjacency)
		return leave(frame, reason, is_in_kernel(sid));
	if (frame->length - removed > adjacency->mtu)
		return leave(frame, REASON_TOO_BIG, is_in_kernel(sid));
	if (removed)
		return pop_and_send(frame, sid, adjacency, removed, dst0, dst1, protocol);

	struct tags tags = tags_of(adjacency);

	/* VLAN tags need headroom. Without them the frame keeps its length. */
	if (tags.outer && cut_head(frame, 0, tags))
		return leave(frame, REASON_NO_HEADROOM, is_in_kernel(sid));
	count_sid(frame, sid);
	struct ipv6hdr *to = data_of(frame) + link_header(tags);
	struct srh *left = (void *)(to + 1);

	if ((void *)(to + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	if (srh) {
		if ((void *)(left + 1) > end_of(frame))
			return drop(frame, REASON_TRUNCATED);
		left->segments_left -= step;
	}
	to->hop_limit--;
	((__u64 *)&to->daddr)[0] = dst0;
	((__u64 *)&to->daddr)[1] = dst1;
	return send(frame, adjacency, tags, bpf_htons(ETH_P_IPV6));
}

#endif
