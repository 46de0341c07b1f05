/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * End.AS (draft-ietf-spring-sr-service-programming section 6.1): removes the outer header, and
 * pushes a configured one onto every packet that returns from the function, as H.Encaps does.
 *
 * end_as_back() returns a TC action.
 *
 * The proxy keeps no per-packet state, so the function may be of any kind and at any place. Packets
 * that it originates get the same header.
 */
#ifndef KAIDO_SRV6_END_AS_H
#define KAIDO_SRV6_END_AS_H

#include "encapsulate.h"
#include "proxy_send.h"

/* Fills the fields that determine the outer header. Returns -1, or the reason to drop the
 * packet. */
static __always_inline int inner_of(struct __sk_buff *skb, int ipv6, struct inner *inner)
{
	const void *packet = (void *)(long)skb->data + ETH_HLEN, *end = (void *)(long)skb->data_end;
	const struct ipv6hdr *ip6 = packet;
	__u32 hash = bpf_get_hash_recalc(skb);

	if ((void *)(ip6 + 1) > end && (ipv6 || packet + sizeof(struct iphdr) > end))
		return REASON_TRUNCATED;
	inner->length = skb->len - ETH_HLEN;
	inner->hash = mix(hash, 0, 0);
	if (!ipv6) {
		inner->protocol = IPPROTO_IPIP;
		inner->hop_limit = HOP_LIMIT4;
		return -1;
	}
	if ((void *)(ip6 + 1) > end)
		return REASON_TRUNCATED;
	if (ip6->hop_limit <= 1)
		return REASON_HOP_LIMIT;
	inner->protocol = IPPROTO_IPV6;
	inner->hop_limit = ip6->hop_limit - 1;
	inner->traffic_class = bpf_ntohs(*(const __be16 *)ip6) >> 4;
	return -1;
}

static __always_inline int end_as_back(struct __sk_buff *skb, const struct control *state,
				       const struct proxy *proxy)
{
	int ipv6 = skb->protocol == bpf_htons(ETH_P_IPV6);
	__be16 protocol = bpf_htons(ETH_P_IPV6);
	struct inner inner = {};
	__u32 number = proxy->policy;

	if (bpf_skb_pull_data(skb, skb->len < ETH_HLEN + 40 ? skb->len : ETH_HLEN + 40))
		return shoot(state, skb, REASON_TRUNCATED);
	int failed = inner_of(skb, ipv6, &inner);

	if (failed >= 0)
		return shoot(state, skb, failed);
	const struct policy *policy = bpf_map_lookup_elem(&policies, &number);
	const struct outer *outer = policy ? list_of(policy, inner.hash, OUTER_ENCAPS) : 0;

	if (!outer || !outer->length)
		return shoot(state, skb, REASON_NO_POLICY);
	__u32 length = outer->length, label = inner.hash >> (64 - FLOW_LABEL_BITS);
	int has_srh = outer->has_srh;

	if (is_finely_segmented(skb, length))
		return shoot(state, skb, REASON_IRREGULAR);
	if (bpf_skb_adjust_room(skb, length, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_ENCAP_L3_IPV6))
		return shoot(state, skb, REASON_NO_HEADROOM);
	__u32 kept = length;

	/* Check the bounds of a separate variable directly before its use: the Linux 6.1 verifier
	 * does not update the bounds of values spilled to the stack. */
	barrier_var(kept);
	if (kept < sizeof(struct ipv6hdr))
		return shoot(state, skb, REASON_NO_POLICY);
	if (kept > LIMIT_OUTER)
		return shoot(state, skb, REASON_NO_POLICY);
	if (bpf_skb_store_bytes(skb, ETH_HLEN, outer->header, kept, 0) ||
	    bpf_skb_store_bytes(skb, 2 * ETH_ALEN, &protocol, sizeof(protocol), 0))
		return shoot(state, skb, REASON_TRUNCATED);
	struct ipv6hdr *ip = (void *)(long)skb->data + ETH_HLEN;
	__u8 *next = (__u8 *)(ip + 1);

	if ((void *)(next + 1) > (void *)(long)skb->data_end)
		return shoot(state, skb, REASON_TRUNCATED);
	*(__be32 *)ip = bpf_htonl(0x60000000 | (__u32)inner.traffic_class << FLOW_LABEL_BITS | label);
	ip->payload_len = bpf_htons(inner.length + length - sizeof(*ip));
	ip->hop_limit = inner.hop_limit;
	ip->nexthdr = has_srh ? IPPROTO_ROUTING : inner.protocol;
	if (has_srh)
		*next = inner.protocol;
	forget_function(skb);
	int verdict = send_by_route(skb, state, state->proxy_in, proxy->port);

	if (verdict == TC_ACT_REDIRECT)
		count_packet(state, proxy->counter, inner.length);
	return verdict;
}

#endif
