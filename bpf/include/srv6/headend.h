/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Headend behaviors: H.Encaps, H.Encaps.Red, H.Encaps.L2 and H.Encaps.L2.Red (RFC 8986 sections 5.1
 * to 5.4) steer packets and frames of tenants into policies. With a policy for sessions of GTP-U, it
 * is H.M.GTP4.D (RFC 9433 section 6.7), or the same for IPv6; with one of mode OUTER_INSERT, H.Insert.
 *
 * Functions return an XDP action unless stated otherwise.
 */
#ifndef KAIDO_SRV6_HEADEND_H
#define KAIDO_SRV6_HEADEND_H

#include "checksum.h"
#include "end_m_gtp_d.h"
#include "insert.h"

/* Steers the inner packet into the policy. */
static __always_inline int steer(const struct frame *frame, __u32 number,
				 const struct inner *inner)
{
	const struct policy *policy = bpf_map_lookup_elem(&policies, &number);

	if (!policy)
		return pass(frame, REASON_NO_POLICY);
	const struct outer *outer = any_list_of(policy, inner->hash);

	if (!outer)
		return leave(frame, REASON_NO_POLICY, policy->in_kernel);
	if (outer->mode) {
		__u32 place = frame->l3 << 24 | frame->length;

		return outer->mode == OUTER_GTP ?
			       from_gtp(frame->ctx, frame->port, 0, number, place) :
			       insert_srh(frame->ctx, frame->port, 0, number, place);
	}
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
