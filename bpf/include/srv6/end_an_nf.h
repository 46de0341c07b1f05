/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * End.AN.NF, first half: applies End to a copy of the outer header in a slot, removes it from the
 * packet, and sends the inner packet into the kernel through `function_out`, the peer of
 * `function_in`.
 *
 * end_an_nf() returns an XDP action. Addresses are in wire byte order.
 *
 * No packet is left to the kernel, which has the SID as an unreachable route, so that no packet
 * bypasses the rules. Not inline, for the reasons given in end_b6_encaps.h. /
 */
#ifndef KAIDO_SRV6_END_AN_NF_H
#define KAIDO_SRV6_END_AN_NF_H

#include "end.h"
#include "passage.h"
#include "slot.h"

/* MAC address of `function_in`. */
#define FUNCTION_MAC_HIGH bpf_htonl(0x024b4149)
#define FUNCTION_MAC_LOW bpf_htons(0x444f)

/* Returns the argument of the packet's SID: the last bits of its destination address, 32 at
 * most. */
static __always_inline __u32 argument_of(const struct sid *sid, const struct ipv6hdr *ip)
{
	__u32 bits = 128 - sid->length;
	__u32 last = bpf_ntohl(ip->daddr.in6_u.u6_addr32[3]);

	return bits >= 32 ? last : last & ~(~0u << bits);
}

/* Saves the next segment's adjacency. If it is not saved, the second half looks it up. */
static __always_inline void keep_adjacency(struct slot *slot, const struct adjacency *adjacency)
{
	/* The interface stacked on the port pushes the VLAN tags. The second half finds it. */
	if (adjacency->outer)
		return;
	slot->ifindex = adjacency->ifindex;
	store64(slot->ethernet, load64(adjacency->stations));
	store32(slot->ethernet + 8, load32(adjacency->stations + 8));
	slot->generation = adjacency->generation;
}

/* The next segment is local: marks the packet for reprocessing by the data plane. */
static __always_inline void keep_own(struct slot *slot, __u32 port)
{
	*(__u32 *)slot->ethernet = AGAIN_MAC_HIGH;
	store16(slot->ethernet + 4, AGAIN_MAC_LOW);
	store16(slot->ethernet + ETH_ALEN, port);
	store16(slot->ethernet + ETH_ALEN + 2, port >> 16);
	store16(slot->ethernet + ETH_ALEN + 4, 0);
}

static __always_inline int keep_header(struct slot *slot, const struct frame *frame, __u32 length)
{
	const void *from = data_of(frame) + ETH_HLEN;

	return copy_held(slot->header, from, from, end_of(frame), length);
}

/* Check that the kernel forwards the inner packet unchanged (it would treat multicast and
 * link-local packets as its own), and store the hash of its addresses in `*pair`.
 *
 * The kernel decrements the hop limit, so it is incremented here. The packet then keeps its hop
 * limit, and a packet on its last hop is not dropped. Return slot flags, with SLOT_RAISED if the
 * hop limit was incremented, or -1 for an unsupported packet. */
static __always_inline int enter6(struct ipv6hdr *ip, const void *end, __u32 length, __u64 *pair)
{
	if ((void *)(ip + 1) > end || ip->version != 6 ||
	    bpf_ntohs(ip->payload_len) + sizeof(*ip) != length || is_special6(high(&ip->saddr)) ||
	    is_special6(high(&ip->daddr)))
		return -1;
	*pair = pair6((const __u64 *)&ip->saddr, (const __u64 *)&ip->daddr);
	if (ip->hop_limit == 255)
		return SLOT_IPV6;
	ip->hop_limit++;
	return SLOT_IPV6 | SLOT_RAISED;
}

static __always_inline int enter4(struct iphdr *ip, const void *end, __u32 length, __u64 *pair)
{
	if ((void *)(ip + 1) > end || ip->version != 4 || bpf_ntohs(ip->tot_len) != length ||
	    is_special4(ip->saddr) || is_special4(ip->daddr))
		return -1;
	*pair = pair4(ip->saddr, ip->daddr);
	if (ip->ttl == 255)
		return 0;
	raise_ttl(ip);
	return SLOT_RAISED;
}

/* `length`: of the packet, without padding. */
static __noinline int end_an_nf(struct xdp_md *ctx, const struct port *port, const struct sid *sid,
				__u32 length, const struct control *state)
{
	struct frame whole = {
		.ctx = ctx,
		.control = state,
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

	if ((void *)(ip + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	if (find_srh(frame, ip, &reason) != SRH_GOOD)
		return drop(frame, reason);
	if (!srh->segments_left)
		return drop(frame, REASON_LAST_SEGMENT);
	if (ip->hop_limit <= 1)
		return drop(frame, REASON_HOP_LIMIT);
	__u32 outer = sizeof(*ip) + 8 + 8 * srh->length;
	__u8 protocol = srh->next_header;

	if (protocol != IPPROTO_IPV6 && protocol != IPPROTO_IPIP)
		return drop(frame, REASON_WRONG_PAYLOAD);
	if (outer > LIMIT_OUTER)
		return drop(frame, REASON_NO_HEADROOM);
	void *packet = (void *)ip + outer;
	const void *end = end_of(frame), *segment = segment_of(srh);
	__u64 pair, tag;
	int flags = protocol == IPPROTO_IPV6 ? enter6(packet, end, length - outer, &pair) :
					       enter4(packet, end, length - outer, &pair);

	if (flags < 0)
		return drop(frame, REASON_IRREGULAR);
	if (segment + 16 > end ||
	    remember_passage(frame->control, pair, sid->params.netfilter.answers))
		return drop(frame, REASON_TRUNCATED);
	__u64 dst0 = high(segment), dst1 = low(segment);
	const struct adjacency *adjacency = route(
		frame, dst0, dst1, high(&ip->saddr), low(&ip->saddr),
		ROUTE_FLOW(*(__be32 *)ip & FLOW_MASK, ip->nexthdr),
		ROUTE_TABLE(AF_INET6, frame->port->ifindex, 0), &unknown);

	if (adjacency && frame->length > adjacency->mtu)
		return drop(frame, REASON_TOO_BIG);
	struct slot *slot = take_slot(frame->control, frame->row, &tag);

	if (!slot)
		return drop(frame, REASON_STATE_LOST);
	close_slot(slot);
	slot->generation = 0;
	if (adjacency) {
		keep_adjacency(slot, adjacency);
	} else if (unknown == REASON_NO_ROUTE) {
		/* Another local SID, or no route: function_again() decides. */
		flags |= SLOT_AGAIN;
		keep_own(slot, frame->port->ifindex);
	}
	if (keep_header(slot, frame, outer))
		return drop(frame, REASON_TRUNCATED);
	struct ipv6hdr *kept = (void *)slot->header;

	kept->hop_limit--;
	((struct srh *)(kept + 1))->segments_left--;
	store64(&kept->daddr, dst0);
	store64((void *)&kept->daddr + 8, dst1);
	copy_station(slot->station, (void *)ip - ETH_ALEN - 2);
	slot->mark = argument_of(sid, ip);
	slot->counter = sid->params.netfilter.returned;
	slot->port = frame->port->ifindex;
	open_slot(slot, tag, outer, flags);

	count_sid(frame, sid);
	if (bpf_xdp_adjust_head(ctx, outer))
		return drop(frame, REASON_NO_HEADROOM);
	void *front = data_of(frame);

	if (front + ETH_HLEN > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	store32(front, FUNCTION_MAC_HIGH);
	store16(front + 4, FUNCTION_MAC_LOW);
	store_tag(front + ETH_ALEN, tag);
	store16(front + 2 * ETH_ALEN,
		protocol == IPPROTO_IPV6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP));
	return bpf_redirect_map(&function_devices, DEVICE_NETFILTER, XDP_DROP);
}

#endif
