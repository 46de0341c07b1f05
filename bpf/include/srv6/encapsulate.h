/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Encapsulation (RFC 8986 section 5): pushes a precomputed outer header.
 *
 * Functions return an XDP action unless stated otherwise. `hash` is the flow hash of the inner
 * packet.
 *
 * As in the kernel, the traffic class and hop limit of an inner IPv6 packet are copied to the outer
 * header; for inner IPv4 they are 0 and 64. The outer hop limit is decremented, the inner one is
 * not. Unlike in the kernel, the flow label is a hash of the inner flow for every type of payload
 * (RFC 6437), so that the network distributes flows over equal-cost paths.
 */
#ifndef KAIDO_SRV6_ENCAPSULATE_H
#define KAIDO_SRV6_ENCAPSULATE_H

#include "found.h"
#include "send.h"
#include "too_big.h"

/* The kernel's default hop limit for locally generated packets, decremented once. */
#define HOP_LIMIT4 63
#define FLOW_LABEL_BITS 20

/* Properties of the inner packet that determine the outer header. */
struct inner {
	__u32 at;      /* offset of the inner packet in the frame; the bytes before it are
		        * removed */
	__u32 length;
	__u8 protocol; /* next header value */
	__u8 hop_limit;
	__u8 traffic_class;
	__u64 hash;    /* of the flow */
};

/* Copies the outer header to `to` in the frame, eight bytes at a time: all but two lengths are
 * multiples of eight. Returns 0, or -1 if the frame is too short. */
static __always_inline int copy_outer(const struct frame *frame, void *to,
				      const struct outer *outer)
{
	const void *end = end_of(frame);
	__u64 *word = to;
	const __u64 *from = (const __u64 *)outer->header;

	if (to + sizeof(struct ipv6hdr) > end)
		return -1;
	for (int i = 0; i < 5; i++)
		word[i] = from[i];
	for (int i = 5; i < LIMIT_OUTER / 8; i++) {
		if (i * 8 >= outer->length)
			break;
		if ((void *)(word + i + 1) > end)
			return -1;
		word[i] = from[i];
	}
	return 0;
}

/* Sends an ICMP error to the sender, or leaves the packet if no error may be sent. */
static __always_inline int answer_too_big(const struct frame *frame, const struct outer *outer,
					  const struct inner *inner, __u32 mtu, int in_kernel)
{
	const struct ipv6hdr *header = (const void *)outer->header;
	struct too_big what = {
		.l3 = inner->at,
		.length = inner->length,
		.mtu = mtu - outer->length,
		.ipv6 = inner->protocol == IPPROTO_IPV6,
		.source = {high(&header->saddr), low(&header->saddr)},
	};

	if (inner->protocol == IPPROTO_ETHERNET || mtu <= outer->length)
		return leave(frame, REASON_TOO_BIG, in_kernel);
	int sent = send_too_big(frame->ctx, &what);

	if (!sent)
		return leave(frame, REASON_TOO_BIG, in_kernel);
	if (sent < 0)
		return drop(frame, REASON_TOO_BIG);
	drop(frame, REASON_TOO_BIG_NOTIFIED);
	/* Not XDP_TX: on a veth, the frame would wait until the other end polls for another
	 * reason. */
	return bpf_redirect_map(&devices, frame->port->ifindex & (LIMIT_PORTS - 1), XDP_DROP);
}

/* Pushes the header of a segment list and sends the packet. `tells` is nonzero if the packet is as
 * its sender wrote it: the sender is then notified if it is too big. `dst0`, `dst1`: the first
 * segment, for the lookup of the route. Routes are looked up without the source: rules by source are
 * for senders, and the outer source is this node's. */
static __always_inline int encapsulate_to(const struct frame *frame, const struct outer *outer,
					  const struct inner *inner, __u64 dst0, __u64 dst1,
					  __u32 counter, int in_kernel, int tells)
{
	__u32 label = inner->hash >> (64 - FLOW_LABEL_BITS);
	__be32 flow = bpf_htonl((__u32)inner->traffic_class << FLOW_LABEL_BITS | label);
	__u8 next_header = outer->has_srh ? IPPROTO_ROUTING : inner->protocol;
	__u32 length = outer->length + inner->length;
	int reason;

	if (!outer->length)
		return leave(frame, REASON_NO_ROUTE, in_kernel);
	const struct adjacency *adjacency =
		route(frame, dst0, dst1, 0, 0, ROUTE_FLOW(flow, next_header),
		      ROUTE_TABLE(AF_INET6, frame->port->ifindex, 0), &reason);

	if (!adjacency)
		return leave(frame, reason, in_kernel);
	if (length > adjacency->mtu)
		return tells ? answer_too_big(frame, outer, inner, adjacency->mtu, in_kernel) :
			       leave(frame, REASON_TOO_BIG, in_kernel);
	struct tags tags = tags_of(adjacency);
	int cut = (int)inner->at - (int)frame->l3 - outer->length;

	if (cut_head(frame, cut, tags))
		return leave(frame, REASON_NO_HEADROOM, in_kernel);
	struct ipv6hdr *ip = data_of(frame) + link_header(tags);

	if (copy_outer(frame, ip, outer))
		return drop(frame, REASON_TRUNCATED);
	/* The version is in the first four bits. */
	*(__be32 *)ip = flow | bpf_htonl(0x60000000);
	ip->payload_len = bpf_htons(length - sizeof(*ip));
	ip->hop_limit = inner->hop_limit;
	if (outer->has_srh) {
		__u8 *next = (__u8 *)(ip + 1);

		if ((void *)(next + 1) > end_of(frame))
			return drop(frame, REASON_TRUNCATED);
		*next = inner->protocol;
	} else {
		ip->nexthdr = inner->protocol;
	}
	add_to(frame, counter);
	return send(frame, adjacency, tags, bpf_htons(ETH_P_IPV6));
}

/* Pushes the header of a segment list, which determines the route. */
static __always_inline int encapsulate(const struct frame *frame, const struct outer *outer,
				       const struct inner *inner, __u32 counter, int in_kernel,
				       int tells)
{
	const struct ipv6hdr *header = (const void *)outer->header;

	return encapsulate_to(frame, outer, inner, high(&header->daddr), low(&header->daddr),
			      counter, in_kernel, tells);
}

/* Returns the segment list, of any mode, that the policy selects for a flow. */
static __always_inline const struct outer *any_list_of(const struct policy *policy, __u64 hash)
{
	__u32 list = policy->list;

	if (policy->spread) {
		__u32 at = policy->spread;
		const struct spread *spread = bpf_map_lookup_elem(&spreads, &at);

		if (!spread)
			return 0;
		/* Uses other bits than the flow label. */
		list = spread->list[hash >> 32 & (LIMIT_SPREAD - 1)];
	}
	return bpf_map_lookup_elem(&lists, &list);
}

/* Returns the same, or null for a list of another mode: while entries are replaced, a policy may
 * already have its new list. */
static __always_inline const struct outer *list_of(const struct policy *policy, __u64 hash,
						   enum outer_mode mode)
{
	const struct outer *outer = any_list_of(policy, hash);

	return outer && outer->mode == mode ? outer : 0;
}

#endif
