/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * End.AN.NF, the first half: what End does to the outer header is done to a copy in a slot; the
 * inner packet goes to the kernel without it, by `function_out`, whose other end is `function_in`.
 *
 * Nothing here is left to the kernel: it has the SID as a route that leads nowhere, so that no packet
 * gets around the rules. Not inline, for the reasons of end_b6_encaps.h.
 */
#ifndef KAIDO_SRV6_END_AN_NF_H
#define KAIDO_SRV6_END_AN_NF_H

#include "end.h"
#include "passage.h"
#include "slot.h"

/* The address of `function_in`. */
#define FUNCTION_MAC_HIGH bpf_htonl(0x024b4149)
#define FUNCTION_MAC_LOW bpf_htons(0x444f)

/* The argument of the SID that a packet is to: the last bits of its address, 32 at most. */
static __always_inline __u32 argument_of(const struct sid *sid, const struct ipv6hdr *ip)
{
	__u32 bits = 128 - sid->length;
	__u32 last = bpf_ntohl(ip->daddr.in6_u.u6_addr32[3]);

	return bits >= 32 ? last : last & ((1u << bits) - 1);
}

/* What the next segment's adjacency is, if it is known; otherwise the second half looks it up. */
static __always_inline void keep_adjacency(struct slot *slot, const struct adjacency *adjacency)
{
	store16(slot->ethernet + 2 * ETH_ALEN, bpf_htons(ETH_P_IPV6));
	slot->generation = 0;
	/* Tags are pushed by the interface above the port: the second half finds it. */
	if (!adjacency || adjacency->outer)
		return;
	slot->ifindex = adjacency->ifindex;
	copy_station(slot->ethernet, adjacency->stations);
	copy_station(slot->ethernet + ETH_ALEN, adjacency->stations + ETH_ALEN);
	slot->generation = adjacency->generation;
}

/* The next segment is this node's own: the packet comes to the data plane again. */
static __always_inline void keep_own(struct slot *slot, __u32 port)
{
	*(__u32 *)slot->ethernet = AGAIN_MAC_HIGH;
	store16(slot->ethernet + 4, AGAIN_MAC_LOW);
	store16(slot->ethernet + ETH_ALEN, port);
	store16(slot->ethernet + ETH_ALEN + 2, port >> 16);
	store16(slot->ethernet + ETH_ALEN + 4, 0);
}

/* Copies the outer header, `length` bytes. */
static __always_inline int keep_header(struct slot *slot, const struct frame *frame, __u32 length)
{
	const void *from = data_of(frame) + ETH_HLEN;

	for (__u32 at = 0; at < LIMIT_OUTER; at += 8) {
		if (at >= length)
			break;
		if (from + at + 8 > end_of(frame))
			return -1;
		*(__u64 *)(slot->header + at) = *(const __u64 *)(from + at);
	}
	return 0;
}

/* The kernel takes one off the hop limit on the way: it gets one more, so that none of it is gone
 * afterwards, and the last hop is not. `at`: where the packet is. */
static __always_inline int raise_hop_limit(const struct frame *frame, __u32 at, int ipv6)
{
	void *packet = data_of(frame) + ETH_HLEN + at;

	if (ipv6) {
		struct ipv6hdr *ip = packet;

		if ((void *)(ip + 1) > end_of(frame) || ip->hop_limit == 255)
			return 0;
		ip->hop_limit++;
		return SLOT_RAISED;
	}
	struct iphdr *ip = packet;

	if ((void *)(ip + 1) > end_of(frame) || ip->ttl == 255)
		return 0;
	raise_ttl(ip);
	return SLOT_RAISED;
}

/* Whether the inner packet is one that the kernel forwards as it is: to a group, or to everybody on
 * a link, it would be this node's own. */
static __always_inline int is_regular(const struct frame *frame, __u32 at, int ipv6)
{
	const void *packet = data_of(frame) + ETH_HLEN + at;
	const struct ipv6hdr *ip6 = packet;
	const struct iphdr *ip4 = packet;

	if (ipv6)
		return (void *)(ip6 + 1) <= end_of(frame) && ip6->version == 6 &&
		       bpf_ntohs(ip6->payload_len) + sizeof(*ip6) == frame->length - at &&
		       !is_special6(high(&ip6->saddr)) && !is_special6(high(&ip6->daddr));
	return (void *)(ip4 + 1) <= end_of(frame) && ip4->version == 4 &&
	       bpf_ntohs(ip4->tot_len) == frame->length - at && !is_special4(ip4->saddr) &&
	       !is_special4(ip4->daddr);
}

/* Remembers between which addresses an inner packet passes. */
static __always_inline int remember(const struct frame *frame, __u32 at, int ipv6, __u32 way)
{
	const void *packet = data_of(frame) + ETH_HLEN + at;
	const struct ipv6hdr *ip6 = packet;
	const struct iphdr *ip4 = packet;
	__u64 pair;

	if (ipv6) {
		if ((void *)(ip6 + 1) > end_of(frame))
			return -1;
		pair = pair6((const __u64 *)&ip6->saddr, (const __u64 *)&ip6->daddr);
	} else {
		if ((void *)(ip4 + 1) > end_of(frame))
			return -1;
		pair = pair4(ip4->saddr, ip4->daddr);
	}
	return remember_passage(frame->control, pair, way);
}

/* `length`: of the packet, whose padding is off already. */
static __noinline int end_an_nf(struct xdp_md *ctx, const struct port *port, const struct sid *sid,
				__u32 length)
{
	__u32 zero = 0;
	struct frame whole = {
		.ctx = ctx,
		.control = bpf_map_lookup_elem(&control, &zero),
		.port = port,
		.row = bpf_get_smp_processor_id(),
		.l3 = ETH_HLEN,
		.length = length,
	};
	const struct frame *frame = &whole;
	const struct ipv6hdr *ip = data_of(frame) + ETH_HLEN;
	const struct srh *srh = (const void *)(ip + 1);
	enum reason reason = REASON_NO_SRH;
	int unknown;

	if (!frame->control)
		return XDP_DROP;
	if ((void *)(ip + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	if (find_srh(frame, ip, &reason) != SRH_GOOD)
		return drop(frame, reason);
	if (!srh->segments_left)
		return drop(frame, REASON_LAST_SEGMENT);
	if (ip->hop_limit <= 1)
		return drop(frame, REASON_HOP_LIMIT);
	__u32 outer = sizeof(*ip) + 8 + 8 * srh->length;
	int ipv6 = srh->next_header == IPPROTO_IPV6;

	if (!ipv6 && srh->next_header != IPPROTO_IPIP)
		return drop(frame, REASON_WRONG_PAYLOAD);
	if (outer > LIMIT_OUTER)
		return drop(frame, REASON_NO_HEADROOM);
	if (!is_regular(frame, outer, ipv6))
		return drop(frame, REASON_IRREGULAR);
	const void *segment = segment_of(srh);

	if (segment + 16 > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	__u64 dst0 = high(segment), dst1 = low(segment), tag;
	__u32 mark = argument_of(sid, ip);
	const struct adjacency *adjacency = route(
		frame, dst0, dst1, high(&ip->saddr), low(&ip->saddr),
		ROUTE_FLOW(*(__be32 *)ip & FLOW_MASK, ip->nexthdr),
		ROUTE_TABLE(AF_INET6, frame->port->ifindex, 0), &unknown);

	/* Another SID of this node, or none: function_again() finds out. */
	int again = !adjacency && unknown == REASON_NO_ROUTE ? SLOT_AGAIN : 0;

	if (adjacency && frame->length > adjacency->mtu)
		return drop(frame, REASON_TOO_BIG);
	if (remember(frame, outer, ipv6, sid->target[1]))
		return drop(frame, REASON_TRUNCATED);
	struct slot *slot = take_slot(frame->control, frame->row, &tag);

	if (!slot)
		return drop(frame, REASON_STATE_LOST);
	*(volatile __u8 *)&slot->length = 0;
	barrier();
	keep_adjacency(slot, adjacency);
	if (again)
		keep_own(slot, frame->port->ifindex);
	if (keep_header(slot, frame, outer))
		return drop(frame, REASON_TRUNCATED);
	struct ipv6hdr *kept = (void *)slot->header;

	kept->hop_limit--;
	((struct srh *)(kept + 1))->segments_left--;
	((__u64 *)&kept->daddr)[0] = dst0;
	((__u64 *)&kept->daddr)[1] = dst1;
	slot->mark = mark;
	slot->counter = sid->target[0];
	slot->port = frame->port->ifindex;
	const void *ethernet = data_of(frame);

	if (ethernet + ETH_HLEN > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	copy_station(slot->station, ethernet + ETH_ALEN);
	slot->flags = (ipv6 ? SLOT_IPV6 : 0) | again | raise_hop_limit(frame, outer, ipv6);
	store_tag(slot->tag, tag);
	barrier();
	*(volatile __u8 *)&slot->length = outer;

	count_sid(frame, sid);
	if (bpf_xdp_adjust_head(ctx, outer))
		return drop(frame, REASON_NO_HEADROOM);
	void *front = data_of(frame);

	if (front + ETH_HLEN > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	*(__u32 *)front = FUNCTION_MAC_HIGH;
	store16(front + 4, FUNCTION_MAC_LOW);
	store_tag(front + ETH_ALEN, tag);
	store16(front + 2 * ETH_ALEN, bpf_htons(ipv6 ? ETH_P_IPV6 : ETH_P_IP));
	return bpf_redirect_map(&function_devices, 0, XDP_DROP);
}

#endif
