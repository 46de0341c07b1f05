/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Local replies to inner packets of service functions: ICMP errors, and TCP resets from rules that
 * reject.
 *
 * guard() and own() return a TC action. A reply is sent by the return policy of its SID or dropped;
 * it never leaves unencapsulated.
 */
#ifndef KAIDO_SRV6_ANSWER_H
#define KAIDO_SRV6_ANSWER_H

#include "encapsulate.h"
#include "netfilter.h"
#include "passage.h"

#include <linux/tcp.h>

/* The kernel's default for its own packets (net.ipv6.conf.all.hop_limit). */
#define ANSWER_HOP_LIMIT 64
/* Value of skb->tc_index for encapsulated replies. No other user writes the field between two
 * interfaces. */
#define SENT_BACK 0x6b61

static __always_inline int is_error4(__u8 type)
{
	return type == ICMP_UNREACHABLE || type == ICMP_REDIRECT || type == ICMP_TIME_EXCEEDED ||
	       type == ICMP_PARAMETER_PROBLEM;
}

/* Loads bytes relative to the network header, since some interfaces have no link-layer header. */
static __always_inline int load(const struct __sk_buff *skb, __u32 at, void *to, __u32 size)
{
	return bpf_skb_load_bytes_relative(skb, at, to, size, BPF_HDR_START_NET);
}

/* Address pairs, as hashes, of the packet that this one may be a reply to; 0 for none. */
struct answered {
	__u64 pair;
	/* For an ICMP error about a reply: the reversed pair. */
	__u64 reverse;
};

static __always_inline int is_reset(const struct __sk_buff *skb, __u32 at)
{
	struct tcphdr tcp;

	return !load(skb, at, &tcp, sizeof(tcp)) && tcp.rst;
}

static __always_inline struct answered answered4(const struct __sk_buff *skb, __u32 at)
{
	struct answered answered = {};
	struct iphdr ip;
	__u8 type;

	if (load(skb, at, &ip, sizeof(ip)))
		return answered;
	at += ip.ihl * 4;
	if (ip.protocol == IPPROTO_TCP && is_reset(skb, at))
		answered.pair = pair4(ip.daddr, ip.saddr);
	if (ip.protocol != IPPROTO_ICMP || load(skb, at, &type, 1) || !is_error4(type) ||
	    load(skb, at + sizeof(struct icmp), &ip, sizeof(ip)))
		return answered;
	answered.pair = pair4(ip.saddr, ip.daddr);
	answered.reverse = pair4(ip.daddr, ip.saddr);
	return answered;
}

static __always_inline struct answered answered6(const struct __sk_buff *skb, __u32 at)
{
	struct answered answered = {};
	struct ipv6hdr ip;
	__u8 type;

	if (load(skb, at, &ip, sizeof(ip)))
		return answered;
	const __u64 *source = (const __u64 *)&ip.saddr, *destination = (const __u64 *)&ip.daddr;

	at += sizeof(ip);
	if (ip.nexthdr == IPPROTO_TCP && is_reset(skb, at))
		answered.pair = pair6(destination, source);
	if (ip.nexthdr != IPPROTO_ICMPV6 || load(skb, at, &type, 1) ||
	    type >= ICMP6_FIRST_INFORMATIONAL ||
	    load(skb, at + sizeof(struct icmp), &ip, sizeof(ip)))
		return answered;
	answered.pair = pair6(source, destination);
	answered.reverse = pair6(destination, source);
	return answered;
}

/* The same for any packet, including packets that a local route has encapsulated (seg6, ip6tnl),
 * for which it is too late to be sent by a return policy. `*inside` is set to 1 for those. */
static __always_inline struct answered answered_at(const struct __sk_buff *skb, int *inside)
{
	struct ipv6hdr ip;
	__u32 at = sizeof(ip);
	__u8 srh[2];

	*inside = 0;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return answered4(skb, 0);
	if (skb->protocol != bpf_htons(ETH_P_IPV6) || load(skb, 0, &ip, sizeof(ip)))
		return (struct answered){};
	__u8 next = ip.nexthdr;

	if (next == IPPROTO_ROUTING && !load(skb, at, srh, sizeof(srh))) {
		next = srh[0];
		at += 8 + 8 * srh[1];
	}
	*inside = 1;
	if (next == IPPROTO_IPIP)
		return answered4(skb, at);
	if (next == IPPROTO_IPV6)
		return answered6(skb, at);
	*inside = 0;
	return answered6(skb, 0);
}

/* Sends a reply along the segment list of its return policy (H.Encaps, RFC 8986 section 5.1). */
static __always_inline int send_back(struct __sk_buff *skb, const struct control *state, __u32 way,
				     __u64 pair)
{
	const __u32 *number = bpf_map_lookup_elem(&return_policies, &way);
	const struct policy *policy = number ? bpf_map_lookup_elem(&policies, number) : 0;
	const struct outer *outer = policy ? list_of(policy, pair, OUTER_ENCAPS) : 0;
	__u8 protocol = skb->protocol == bpf_htons(ETH_P_IPV6) ? IPPROTO_IPV6 : IPPROTO_IPIP;
	__be16 type = bpf_htons(ETH_P_IPV6);

	if (!outer)
		return shoot(state, skb, REASON_LOCAL_ANSWER);
	__u32 behind = outer->length - sizeof(struct ipv6hdr), inner = skb->len - ETH_HLEN;

	/* Bound a single variable: the compiler merges two comparisons into a form that the
	 * verifier cannot follow. */
	barrier_var(behind);
	if (behind > LIMIT_OUTER - sizeof(struct ipv6hdr))
		return shoot(state, skb, REASON_LOCAL_ANSWER);
	__u32 length = behind + sizeof(struct ipv6hdr);

	if (bpf_skb_adjust_room(skb, length, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_ENCAP_L3_IPV6) ||
	    bpf_skb_store_bytes(skb, 2 * ETH_ALEN, &type, sizeof(type), 0) ||
	    bpf_skb_store_bytes(skb, ETH_HLEN, outer->header, length, 0))
		return shoot(state, skb, REASON_NO_HEADROOM);
	struct ipv6hdr *ip = (void *)(long)skb->data + ETH_HLEN;
	__u8 *after = (__u8 *)(ip + 1);

	if ((void *)(after + 1) > (void *)(long)skb->data_end)
		return shoot(state, skb, REASON_TRUNCATED);
	*(__be32 *)ip = bpf_htonl(0x60000000 | (__u32)(pair >> (64 - FLOW_LABEL_BITS)));
	ip->payload_len = bpf_htons(inner + length - sizeof(*ip));
	ip->hop_limit = ANSWER_HOP_LIMIT;
	*(outer->has_srh ? after : &ip->nexthdr) = protocol;
	skb->tc_index = SENT_BACK;
	/* `kaido-out` has forwarding enabled, whatever the setting of this interface is. */
	int verdict = send_anew(skb, state, ip, state->function_out);

	if (verdict == TC_ACT_REDIRECT)
		count_packet(state, policy->counter, inner);
	return verdict;
}

/* Returns the verdict on a locally generated packet if it is a reply to a packet of a function,
 * otherwise TC_ACT_UNSPEC. `ethernet`: nonzero if it has a link-layer header. */
static __always_inline int answer(struct __sk_buff *skb, const struct control *state, int ethernet)
{
	int inside;

	/* An encapsulated reply on its way out. */
	if (skb->tc_index == SENT_BACK)
		return TC_ACT_UNSPEC;
	struct answered answered = answered_at(skb, &inside);

	if (!answered.pair)
		return TC_ACT_UNSPEC;
	__u32 way = way_back_of(state, answered.pair);

	if (way == NO_PASSAGE) {
		if (!answered.reverse || way_back_of(state, answered.reverse) == NO_PASSAGE)
			return TC_ACT_UNSPEC;
		way = 0;
	}
	if (!way || !ethernet || inside)
		return shoot(state, skb, REASON_LOCAL_ANSWER);
	return send_back(skb, state, way, answered.pair);
}

/* True if an inner packet is about to enter the SRv6 network without an outer header, because the
 * rule that diverts such packets was deleted. Copies that rules send to other interfaces are
 * allowed. */
static __always_inline int escapes(const struct __sk_buff *skb, const struct control *state)
{
	__u32 slot = skb->ifindex & (LIMIT_PORTS - 1);

	if (!skb->tstamp || skb->tstamp >> 48 != state->magic ||
	    skb->ingress_ifindex != state->function_in)
		return 0;
	const struct port *port = bpf_map_lookup_elem(&ports, &slot);

	return port && port->ifindex == skb->ifindex;
}

/* True if the packet is forwarded and is not in a function, since that would have set a timestamp.
 * This is the common case. The checks of other packets are not inline, so that they cost this case
 * no registers. */
static __always_inline int is_forwarded(const struct __sk_buff *skb)
{
	return skb->ingress_ifindex && !skb->tstamp;
}

/* Egress filter of this node's interfaces, except for those of functions. */
static __noinline int guard(struct __sk_buff *skb, int ethernet)
{
	__u32 zero = 0;
	const struct control *state = bpf_map_lookup_elem(&control, &zero);

	if (!state)
		return TC_ACT_UNSPEC;
	/* A forwarded packet is not a local reply. */
	if (skb->ingress_ifindex)
		return escapes(skb, state) ? shoot(state, skb, REASON_STATE_LOST) : TC_ACT_UNSPEC;
	return answer(skb, state, ethernet);
}

/* Handles packets that this node sends on the interface reserved for functions' packets. The
 * interface's own multicast traffic is dropped without a reason. */
static __always_inline int own(struct __sk_buff *skb, const struct control *state)
{
	const __u8 *ethernet = (void *)(long)skb->data;

	if ((void *)(ethernet + 1) <= (void *)(long)skb->data_end && *ethernet & 1)
		return TC_ACT_SHOT;
	int verdict = answer(skb, state, 1);

	return verdict == TC_ACT_UNSPEC ? shoot(state, skb, REASON_LOCAL_ANSWER) : verdict;
}

#endif
