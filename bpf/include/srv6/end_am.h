/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * End.AM (draft-ietf-spring-sr-service-programming section 6.3): sends the packet to the function
 * with its SRH and with the last segment as destination; on return, restores the next segment as
 * destination.
 *
 * end_am() returns -1, or the reason to drop the packet; end_am_back() returns a TC action. Packet
 * data is in network byte order.
 *
 * The proxy is stateless: the SRH, which the function must not change, contains everything that it
 * needs. A packet that returns with another destination than its last segment is dropped.
 */
#ifndef KAIDO_SRV6_END_AM_H
#define KAIDO_SRV6_END_AM_H

#include "proxy_send.h"
#include "srh.h"

/* Sets the last segment as destination and decrements Segments Left. */
static __always_inline int end_am(const struct frame *frame)
{
	struct ipv6hdr *ip = data_of(frame) + ETH_HLEN;
	struct srh *srh = (void *)(ip + 1);
	const __u64 *last = (void *)(srh + 1);

	if ((void *)(last + 2) > end_of(frame))
		return REASON_TRUNCATED;
	/* The kernel does not forward packets from multicast or link-local sources. */
	if (is_special6(last[0]))
		return REASON_IRREGULAR;
	ip->hop_limit--;
	srh->segments_left--;
	((__u64 *)&ip->daddr)[0] = last[0];
	((__u64 *)&ip->daddr)[1] = last[1];
	return -1;
}

/* Returns the next segment of a returned packet, or null with `*reason` set. */
static __always_inline const void *masked_segment(const struct __sk_buff *skb, enum reason *reason)
{
	const struct ipv6hdr *ip = (void *)(long)skb->data + ETH_HLEN;
	const struct srh *srh = (const void *)(ip + 1);
	const __u64 *last = (const void *)(srh + 1);
	const void *end = (void *)(long)skb->data_end;

	*reason = REASON_NO_SRH;
	if (skb->protocol != bpf_htons(ETH_P_IPV6) || (void *)(last + 2) > end ||
	    ip->nexthdr != IPPROTO_ROUTING || srh->type != ROUTING_SRH)
		return 0;
	*reason = REASON_TLV;
	if (srh->length > 2 * ((__u32)srh->last_entry + 1))
		return 0;
	*reason = REASON_MALFORMED;
	__u32 left = srh->segments_left;

	/* Must be as end_am() left it. */
	if (srh->length != 2 * ((__u32)srh->last_entry + 1) || left > srh->last_entry ||
	    high(&ip->daddr) != last[0] || low(&ip->daddr) != last[1])
		return 0;
	const void *segment = (const void *)last + 16 * left;

	*reason = REASON_TRUNCATED;
	return segment + 16 > end ? 0 : segment;
}

static __always_inline int end_am_back(struct __sk_buff *skb, const struct control *state,
				       const struct proxy *proxy)
{
	__u32 most = ETH_HLEN + LIMIT_OUTER, length = skb->len - ETH_HLEN;
	const struct ipv6hdr *ip;
	const struct srh *srh;
	enum reason reason;
	__u64 next[2];
	__u8 hop_limit;

	if (bpf_skb_pull_data(skb, skb->len < most ? skb->len : most))
		return shoot(state, skb, REASON_TRUNCATED);
	const __u64 *segment = masked_segment(skb, &reason);

	if (!segment)
		return shoot(state, skb, reason);
	next[0] = segment[0];
	next[1] = segment[1];
	ip = (void *)(long)skb->data + ETH_HLEN;
	srh = (const void *)(ip + 1);
	if ((void *)(srh + 1) > (void *)(long)skb->data_end)
		return shoot(state, skb, REASON_TRUNCATED);
	__u32 outer = sizeof(*ip) + 8 + 8 * srh->length;

	if (is_sum_before(skb, ETH_HLEN + outer) || is_finely_segmented(skb, outer))
		return shoot(state, skb, REASON_IRREGULAR);
	/* This node forwards the packet, which also prevents that it is taken for neighbor discovery
	 * (255) on the next link. */
	if (ip->hop_limit <= 1)
		return shoot(state, skb, REASON_HOP_LIMIT);
	hop_limit = ip->hop_limit - 1;
	if (bpf_skb_store_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, daddr), next,
				sizeof(next), BPF_F_RECOMPUTE_CSUM) ||
	    bpf_skb_store_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, hop_limit), &hop_limit,
				sizeof(hop_limit), BPF_F_RECOMPUTE_CSUM))
		return shoot(state, skb, REASON_TRUNCATED);
	forget_function(skb);
	int verdict = send_by_route(skb, state, state->proxy_in, proxy->port);

	if (verdict == TC_ACT_REDIRECT)
		count_packet(state, proxy->counter, length);
	return verdict;
}

#endif
