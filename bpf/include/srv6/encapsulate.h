/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * H.Encaps, H.Encaps.Red, H.Encaps.L2 and H.Encaps.L2.Red (RFC 8986 sections 5.1 to 5.4): pushes a
 * precomputed outer header.
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
 * its sender wrote it: the sender is then notified if it is too big. Routes are looked up without the
 * source: rules by source are for senders, and the outer source is this node's. */
static __always_inline int encapsulate(const struct frame *frame, const struct outer *outer,
				       const struct inner *inner, __u32 counter, int in_kernel,
				       int tells)
{
	__u32 label = inner->hash >> (64 - FLOW_LABEL_BITS);
	__be32 flow = bpf_htonl((__u32)inner->traffic_class << FLOW_LABEL_BITS | label);
	const struct ipv6hdr *header = (const void *)outer->header;
	__u8 next_header = outer->has_srh ? IPPROTO_ROUTING : inner->protocol;
	__u32 length = outer->length + inner->length;
	int reason;

	if (!outer->length)
		return leave(frame, REASON_NO_ROUTE, in_kernel);
	const struct adjacency *adjacency =
		route(frame, high(&header->daddr), low(&header->daddr), 0, 0,
		      ROUTE_FLOW(flow, next_header), ROUTE_TABLE(AF_INET6, frame->port->ifindex, 0),
		      &reason);

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

/* Returns the segment list that the policy selects for a flow. */
static __always_inline const struct outer *list_of(const struct policy *policy, __u64 hash)
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

/* Steers the inner packet into the policy. */
static __always_inline int steer(const struct frame *frame, __u32 number,
				 const struct inner *inner)
{
	const struct policy *policy = bpf_map_lookup_elem(&policies, &number);

	if (!policy)
		return pass(frame, REASON_NO_POLICY);
	const struct outer *outer = list_of(policy, inner->hash);

	if (!outer)
		return leave(frame, REASON_NO_POLICY, policy->in_kernel);
	return encapsulate(frame, outer, inner, policy->counter, policy->in_kernel, 1);
}

/* Handles a packet of a policy that the program does not support: leaves it to the kernel if that
 * has the policy, otherwise drops it. */
static __always_inline int decline(const struct frame *frame, __u32 number, enum reason reason)
{
	const struct policy *policy = bpf_map_lookup_elem(&policies, &number);

	return leave(frame, reason, policy && policy->in_kernel);
}

/* Returns the TCP or UDP ports as one word, 0 for other protocols. The result is 0 for fragments
 * too, which may lack the ports, so that all fragments of a packet take the same path. */
static __always_inline __u32 ports_at(const struct frame *frame, const void *at, __u8 protocol)
{
	if ((protocol != IPPROTO_TCP && protocol != IPPROTO_UDP) || at + 4 > end_of(frame))
		return 0;
	return *(__u32 *)at;
}

/* Returns the one's complement sum of a 20-byte header; 0xffff if its checksum is correct. */
static __always_inline __u16 header_sum(const struct iphdr *ip)
{
	const __u32 *word = (const __u32 *)ip;
	__u64 sum = (__u64)word[0] + word[1] + word[2] + word[3] + word[4];

	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum + (sum >> 16);
}

static __always_inline int headend4(struct frame *frame, __u32 number)
{
	const struct iphdr *ip = data_of(frame) + frame->l3;

	if ((void *)(ip + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	__u32 policy = find_policy(frame, number, ip->daddr, 0);

	if (!policy)
		return pass(frame, REASON_NO_POLICY);
	frame->length = bpf_ntohs(ip->tot_len);
	if (ip->version != 4 || ip->ihl != 5 || frame->length < sizeof(*ip) ||
	    is_special4(ip->saddr) || is_special4(ip->daddr) || header_sum(ip) != 0xffff)
		return decline(frame, policy, REASON_IRREGULAR);
	if (fit(frame))
		return drop(frame, REASON_TRUNCATED);
	ip = data_of(frame) + frame->l3;
	if ((void *)(ip + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	__u32 fragment = ip->frag_off & bpf_htons(0x3fff);
	__u32 ports = fragment ? 0 : ports_at(frame, ip + 1, ip->protocol);
	struct inner inner = {
		.at = frame->l3,
		.length = frame->length,
		.protocol = IPPROTO_IPIP,
		.hop_limit = HOP_LIMIT4,
		.hash = mix(ip->saddr, ip->daddr, (__u64)ports << 32 | ip->protocol),
	};

	return steer(frame, policy, &inner);
}

static __always_inline int headend6(struct frame *frame, __u32 number)
{
	const struct ipv6hdr *ip = data_of(frame) + frame->l3;

	if ((void *)(ip + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	__u32 policy = find_policy(frame, number | OWNER_IPV6, high(&ip->daddr), low(&ip->daddr));

	if (!policy)
		return pass(frame, REASON_NO_POLICY);
	frame->length = sizeof(*ip) + bpf_ntohs(ip->payload_len);
	if (ip->version != 6 || ip->nexthdr == IPPROTO_HOPOPTS ||
	    is_special6(high(&ip->saddr)) || is_special6(high(&ip->daddr)))
		return decline(frame, policy, REASON_IRREGULAR);
	if (ip->hop_limit <= 1)
		return decline(frame, policy, REASON_HOP_LIMIT);
	if (fit(frame))
		return drop(frame, REASON_TRUNCATED);
	ip = data_of(frame) + frame->l3;
	if ((void *)(ip + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	__u32 ports = ports_at(frame, ip + 1, ip->nexthdr);
	struct inner inner = {
		.at = frame->l3,
		.length = frame->length,
		.protocol = IPPROTO_IPV6,
		.hop_limit = ip->hop_limit - 1,
		.traffic_class = bpf_ntohs(*(__be16 *)ip) >> 4,
		.hash = mix(high(&ip->saddr) ^ low(&ip->daddr),
				low(&ip->saddr) + high(&ip->daddr),
				(__u64)ports << 32 | ip->nexthdr),
	};

	return steer(frame, policy, &inner);
}

/* H.Encaps.L2: steers the whole frame, including VLAN tags, into its attachment's policy. */
static __always_inline int headend2(struct frame *frame, __u32 policy)
{
	const void *ethernet = data_of(frame);
	__u32 whole = bpf_xdp_get_buff_len(frame->ctx);

	if (ethernet + ETH_HLEN > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	frame->length = whole;
	struct inner inner = {
		.at = 0,
		.length = whole,
		.protocol = IPPROTO_ETHERNET,
		.hop_limit = HOP_LIMIT4,
		.hash = mix(high(ethernet), load32(ethernet + 8), ethertype_of(ethernet)),
	};

	return steer(frame, policy, &inner);
}

#endif
