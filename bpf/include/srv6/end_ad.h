/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * End.AD (draft-ietf-spring-sr-service-programming section 6.2): applies End to a copy of the outer
 * header in a slot, sends the inner packet to the function without it, and pushes the copy onto the
 * packet when it returns.
 *
 * end_ad() returns -1, or the reason to drop the packet; end_ad_back() returns a TC action. Tags
 * are in host byte order.
 *
 * A slot belongs to one packet, not to a flow, so a function may change addresses and ports. The
 * tag that identifies the slot passes through the function
 *
 * - as the destination MAC address, if the function is a bump in the wire: a counter of 40 bits.
 *   Bridges on the path do not learn destinations, whereas a source address per packet would fill
 *   their tables; and a bridge floods unknown destinations to its other side.
 * - as the packet's hash (skb->hash), if the function routes: the low 32 bits of the counter. The
 *   hash survives a veth, another namespace, forwarding, NAT and queues. It is lost if the packet
 *   leaves the machine.
 *
 * The tags of a ring are consecutive numbers with a random start. A tag is valid for 4.3 s and
 * until LIMIT_PROXIED further packets have been sent: a late packet finds another tag in its slot
 * and is dropped. A packet originated by the function has no tag, and no hash or a random one. A
 * random hash is mistaken for a tag with probability (live tags) / 2^32, at most 8192 / 2^32: one
 * in 500,000 such packets, or one in 2 million if 500 packets a second pass through the function.
 * Such a packet is sent to the next segment of another packet. A MAC address cannot match by
 * chance.
 */
#ifndef KAIDO_SRV6_END_AD_H
#define KAIDO_SRV6_END_AD_H

#include "end_an_nf.h"
#include "proxy_send.h"

/* First byte of a tag: a locally administered unicast MAC address. The counter follows. */
#define TAG_STATION 0x46

static __always_inline __u32 proxied_now(void)
{
	return bpf_ktime_get_coarse_ns() >> LIMIT_PROXIED_TICK_BITS;
}

static __always_inline struct slot *proxied_slot(__u32 ring, __u64 count)
{
	__u32 at = ring * LIMIT_PROXIED + (count & (LIMIT_PROXIED - 1));

	return bpf_map_lookup_elem(&proxy_slots, &at);
}

/* Allocates the next slot of a ring and stores its tag in `*tag`. Skips the value 0, which means no
 * hash. */
static __always_inline struct slot *take_proxied(__u32 ring, __u64 *tag)
{
	__u64 *taken = bpf_map_lookup_elem(&proxy_heads, &ring);

	if (!taken)
		return 0;
	__u64 count = __sync_fetch_and_add(taken, 1);

	if (!(__u32)count)
		count = __sync_fetch_and_add(taken, 1);
	*tag = (count << 8 | TAG_STATION) & ((1ull << 48) - 1);
	return proxied_slot(ring, count);
}

/* Saves the outer header of `outer` bytes. Returns -1, or the reason to drop the packet. */
static __always_inline int end_ad(const struct frame *frame, const struct proxy *proxy,
				  __u32 outer, int ipv6, __u64 *tag)
{
	const struct ipv6hdr *ip = data_of(frame) + ETH_HLEN;
	const struct srh *srh = (const void *)(ip + 1);
	int unknown;

	if ((void *)(srh + 1) > end_of(frame))
		return REASON_TRUNCATED;
	const void *segment = segment_of(srh);

	if (segment + 16 > end_of(frame))
		return REASON_TRUNCATED;
	__u64 dst0 = high(segment), dst1 = low(segment);
	const struct adjacency *adjacency = route(
		frame, dst0, dst1, high(&ip->saddr), low(&ip->saddr),
		ROUTE_FLOW(*(__be32 *)ip & FLOW_MASK, ip->nexthdr),
		ROUTE_TABLE(AF_INET6, frame->port->ifindex, 0), &unknown);

	if (adjacency && frame->length > adjacency->mtu)
		return REASON_TOO_BIG;
	struct slot *slot = take_proxied(proxy->ring, tag);

	if (!slot)
		return REASON_STATE_LOST;
	close_slot(slot);
	store16(slot->ethernet + 2 * ETH_ALEN, bpf_htons(ETH_P_IPV6));
	slot->generation = 0;
	if (adjacency)
		keep_adjacency(slot, adjacency);
	if (keep_header(slot, frame, outer))
		return REASON_TRUNCATED;
	struct ipv6hdr *kept = (void *)slot->header;

	kept->hop_limit--;
	((struct srh *)(kept + 1))->segments_left--;
	((__u64 *)&kept->daddr)[0] = dst0;
	((__u64 *)&kept->daddr)[1] = dst1;
	slot->mark = proxied_now();
	slot->counter = proxy->counter;
	slot->port = frame->port->ifindex;
	open_slot(slot, *tag, outer,
		  (ipv6 ? SLOT_IPV6 : 0) | (proxy->family ? SLOT_ROUTED : 0));
	return -1;
}

/* Returns the slot of a returned packet and stores its tag in `*tag`; null if no valid slot
 * matches. */
static __always_inline const struct slot *returned_slot(const struct __sk_buff *skb, __u32 ring,
							__u64 station, __u64 *tag)
{
	__u32 hash = skb->hash;
	const struct slot *slot = proxied_slot(ring, station >> 8);

	if (!slot)
		return 0;
	if ((station & 0xff) == TAG_STATION && is_slot_of(slot, station) &&
	    !(slot->flags & SLOT_ROUTED)) {
		*tag = station;
	} else {
		slot = proxied_slot(ring, hash);
		if (!slot || !hash || !(slot->flags & SLOT_ROUTED))
			return 0;
		*tag = tag_at(slot->tag);
		if ((__u32)(*tag >> 8) != hash || !is_slot_of(slot, *tag))
			return 0;
	}
	return proxied_now() - slot->mark > LIMIT_PROXIED_TICKS ? 0 : slot;
}

/* Pushes the saved outer header and sends the packet. */
static __always_inline int end_ad_back(struct __sk_buff *skb, const struct control *state,
				       __u32 ring)
{
	const void *ethernet = (void *)(long)skb->data;
	__u64 tag = 0;

	if (ethernet + ETH_HLEN > (void *)(long)skb->data_end)
		return shoot(state, skb, REASON_TRUNCATED);
	const struct slot *slot = returned_slot(skb, ring, tag_at(ethernet), &tag);

	if (!slot)
		return shoot(state, skb, REASON_STATE_LOST);
	__u32 length = slot->length, inner = skb->len - ETH_HLEN;
	__u32 counter = slot->counter, port = slot->port, ifindex = slot->ifindex;
	__u32 generation = slot->generation;
	__be16 protocol = slot->flags & SLOT_IPV6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);

	if (skb->protocol != protocol)
		return shoot(state, skb, REASON_STATE_LOST);
	if (is_finely_segmented(skb, length))
		return shoot(state, skb, REASON_IRREGULAR);
	if (bpf_skb_adjust_room(skb, length, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_ENCAP_L3_IPV6))
		return shoot(state, skb, REASON_NO_HEADROOM);
	__u32 kept = length;

	/* Check the bounds of a separate variable directly before its use: the Linux 6.1 verifier
	 * does not update the bounds of values spilled to the stack. */
	barrier_var(kept);
	if (kept > LIMIT_OUTER)
		return shoot(state, skb, REASON_STATE_LOST);
	if (bpf_skb_store_bytes(skb, 0, slot->ethernet, ETH_HLEN + kept, 0))
		return shoot(state, skb, REASON_TRUNCATED);
	struct ipv6hdr *ip = (void *)(long)skb->data + ETH_HLEN;

	if ((void *)(ip + 1) > (void *)(long)skb->data_end)
		return shoot(state, skb, REASON_TRUNCATED);
	ip->payload_len = bpf_htons(inner + length - sizeof(*ip));
	/* A later packet may have reused the slot during the copy. */
	barrier(); /* for the compiler: x86 keeps loads in order */
	if (!is_slot_of(slot, tag))
		return shoot(state, skb, REASON_STATE_LOST);
	forget_function(skb);
	int verdict;

	if (generation == state->generation) {
		/* The function may have enlarged the packet. */
		if (exceeds(skb, ifindex))
			return shoot(state, skb, REASON_TOO_BIG);
		verdict = bpf_redirect(ifindex, 0);
	} else {
		verdict = send_by_route(skb, state, port, port);
	}
	if (verdict == TC_ACT_REDIRECT)
		count_packet(state, counter, inner);
	return verdict;
}

#endif
