/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * End.M.GTP6.D, End.M.GTP6.D.Di and H.M.GTP4.D (RFC 9433 sections 6.3, 6.4 and 6.7): moves the payload
 * of a GTP-U tunnel into a policy, with the session in the argument of the last segment.
 *
 * The outer header of the policy has the positions of the argument: see `struct outer`. For
 * H.M.GTP4.D, the IPv4 destination precedes the session in the argument, and the outer source
 * contains the IPv4 source. Drop-in (D.Di) writes the original destination into the last segment, and
 * the session, if there is a position for it, into the one before.
 *
 * from_gtp() returns an XDP action. It is not inline: see end_b6_encaps.h. As the tunnels are
 * concatenated, the traffic class and the decremented hop limit of the old outer header are those of
 * the new one. The UDP checksum is not verified: the payload has its own.
 */
#ifndef KAIDO_SRV6_END_M_GTP_D_H
#define KAIDO_SRV6_END_M_GTP_D_H

#include "encapsulate.h"
#include "gtp.h"
#include "source.h"

/* Reads the old outer header. Returns 0, or -1 with `*verdict` set. `sid` is null for a tenant's
 * packet. */
static __always_inline int read_gtp_outer(const struct frame *frame, const struct sid *sid,
					  struct gtp_tunnel *old, int *verdict)
{
	const struct ipv6hdr *ip = data_of(frame) + frame->l3;
	const struct iphdr *ip4 = (const void *)ip;

	*verdict = XDP_DROP;
	if ((void *)(ip4 + 1) > end_of(frame)) {
		*verdict = drop(frame, REASON_TRUNCATED);
		return -1;
	}
	if (ip4->version == 4) {
		/* The checks of headend4(). */
		if (ip4->protocol != IPPROTO_UDP || ip4->frag_off & bpf_htons(0x3fff)) {
			*verdict = drop(frame, REASON_GTP);
			return -1;
		}
		old->at = frame->l3 + sizeof(*ip4);
		old->hop_limit = ip4->ttl;
		old->traffic_class = ip4->tos;
		old->addresses = (struct bits){
			(__u64)bpf_ntohl(ip4->saddr) << 32 | bpf_ntohl(ip4->daddr), 0};
		old->is_ipv6 = 0;
		return 0;
	}
	if ((void *)(ip + 1) > end_of(frame)) {
		*verdict = drop(frame, REASON_TRUNCATED);
		return -1;
	}
	enum reason reason = REASON_NO_SRH;
	enum srh_found found = find_srh(frame, ip, &reason);
	const struct srh *srh = (const void *)(ip + 1);
	__u8 protocol = ip->nexthdr;
	__u32 at = frame->l3 + sizeof(*ip);

	if (found == SRH_OTHER) {
		*verdict = drop(frame, reason);
		return -1;
	}
	if (found == SRH_GOOD) {
		if (srh->segments_left || !sid) {
			*verdict = drop(frame, REASON_WRONG_PAYLOAD);
			return -1;
		}
		protocol = srh->next_header;
		at += 8 + 8 * srh->length;
	}
	if (protocol != IPPROTO_UDP) {
		*verdict = drop(frame, REASON_GTP);
		return -1;
	}
	old->at = at;
	old->hop_limit = ip->hop_limit;
	old->traffic_class = bpf_ntohs(*(__be16 *)ip) >> 4;
	old->addresses = bits_of(&ip->daddr);
	old->is_ipv6 = 1;
	return 0;
}

/* Index in the list of the segment with the argument. */
static __always_inline __u32 argument_index(const struct outer *outer)
{
	return outer->is_drop_in & 1;
}

/* True if the list in the SRH contains this segment. */
static __always_inline int is_in_list(const struct outer *outer)
{
	const struct srh *srh = (const void *)outer->header + sizeof(struct ipv6hdr);

	return outer->has_srh && srh->last_entry >= argument_index(outer);
}

/* True if it is the first segment of the path. */
static __always_inline int is_first(const struct outer *outer)
{
	const struct srh *srh = (const void *)outer->header + sizeof(struct ipv6hdr);

	return !outer->has_srh || srh->segments_left == argument_index(outer);
}

/* Returns the segment with the argument. */
static __always_inline struct bits session_segment(const struct outer *outer,
						   const struct gtp_tunnel *old)
{
	const struct ipv6hdr *header = (const void *)outer->header;
	const void *list = outer->header + sizeof(*header) + sizeof(struct srh);
	struct bits segment = bits_of(is_in_list(outer) ? list + 16 * argument_index(outer) :
							  (void *)&header->daddr);

	if (!outer->args_at)
		return segment;
	if (old->is_ipv6)
		return replaced(segment, (struct bits){old->session << 24, 0},
				(struct bits){~0ull << 24, 0}, outer->args_at);
	return replaced(segment,
			(struct bits){old->addresses.high << 32 | old->session >> 8, old->session << 56},
			(struct bits){~0ull, 0xffull << 56}, outer->args_at);
}

/* Returns the new source. */
static __always_inline struct bits session_source(const struct outer *outer,
						  const struct gtp_tunnel *old)
{
	const struct ipv6hdr *header = (const void *)outer->header;
	struct bits source = bits_of(&header->saddr);

	if (old->is_ipv6)
		return source;
	return replaced(source, (struct bits){old->addresses.high >> 32 << 32, 0},
			(struct bits){~0ull << 32, 0}, outer->source_at);
}

/* Writes the addresses into the new header, at offset `front` of the frame. */
static __always_inline int write_session(const struct frame *frame, const struct outer *outer,
					 const struct gtp_tunnel *old, __u32 front)
{
	struct ipv6hdr *to = data_of(frame) + front;
	void *list = (void *)(to + 1) + sizeof(struct srh);
	struct bits segment = session_segment(outer, old);

	if ((void *)(to + 1) > end_of(frame))
		return -1;
	store_bits(&to->saddr, session_source(outer, old));
	if (is_first(outer))
		store_bits(&to->daddr, segment);
	if (outer->is_drop_in) {
		if (list + 16 > end_of(frame))
			return -1;
		store_bits(list, old->addresses);
	}
	if (is_in_list(outer)) {
		list += 16 * argument_index(outer);
		if (list + 16 > end_of(frame))
			return -1;
		store_bits(list, segment);
	}
	return 0;
}

/* Encapsulates the inner packet and writes the session. `old`: the old outer header. */
static __always_inline int encapsulate_session(const struct frame *frame, const struct outer *outer,
					       const struct inner *inner,
					       const struct gtp_tunnel *old, __u32 counter)
{
	const struct ipv6hdr *header = (const void *)outer->header;
	struct bits first = is_first(outer) ? session_segment(outer, old) :
					      bits_of(&header->daddr);
	int verdict = encapsulate_to(frame, outer, inner, bpf_cpu_to_be64(first.high),
				     bpf_cpu_to_be64(first.low), counter, 0, 0);

	if (verdict != XDP_REDIRECT)
		return verdict;
	/* No step can fail any more. */
	__u32 front = bpf_xdp_get_buff_len(frame->ctx) - inner->length - outer->length;

	if (front > ETH_HLEN + 8 || write_session(frame, outer, old, front))
		return drop(frame, REASON_TRUNCATED);
	return verdict;
}

/* True if an address is in the SR domain, and so may be a SID. */
static __always_inline int is_in_domain(const struct bits *address)
{
	return is_source(OWNER_IPV6, bpf_cpu_to_be64(address->high),
			 bpf_cpu_to_be64(address->low));
}

/* `number`: of the policy. `place`: offset of layer 3 in the high 8 bits, and the packet's length. Not
 * static: see route.h. */
__noinline int from_gtp(struct xdp_md *ctx, const struct port *port, const struct sid *sid,
			__u32 number, __u32 place)
{
	__u32 zero = 0;
	struct frame whole = {
		.ctx = ctx,
		.control = bpf_map_lookup_elem(&control, &zero),
		.port = port,
		.row = bpf_get_smp_processor_id(),
		.l3 = place >> 24,
		.length = place & 0xffffff,
	};
	const struct frame *frame = &whole;
	const struct policy *policy = bpf_map_lookup_elem(&policies, &number);
	struct gtp_tunnel *old = bpf_map_lookup_elem(&gtp_tunnels, &zero);
	int verdict;

	if (!port || !frame->control || !old || frame->l3 > ETH_HLEN + 8)
		return XDP_DROP;
	if (!policy)
		return drop(frame, REASON_NO_POLICY);
	if (read_gtp_outer(frame, sid, old, &verdict))
		return verdict;
	__u32 headers = old->at - frame->l3, counter = sid ? sid->counter : policy->counter;

	if (headers >= frame->length)
		return drop(frame, REASON_TRUNCATED);
	__u64 found = find_pdu(ctx, old->at, frame->length - headers);
	__u32 pdu = found >> GTP_OFFSET_SHIFT & GTP_OFFSET_MASK;

	if (!pdu)
		return leave(frame, REASON_GTP, found == GTP_SIGNALLING);
	if (old->hop_limit <= 1)
		return drop(frame, REASON_HOP_LIMIT);
	const void *packet = data_of(frame) + pdu;

	if (packet + sizeof(struct iphdr) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	__u8 version = *(const __u8 *)packet >> 4;

	if (version != 4 && version != 6)
		return drop(frame, REASON_WRONG_PAYLOAD);
	old->session = found & GTP_SESSION_MASK;
	struct inner inner = {
		.at = pdu,
		.length = frame->length - (pdu - frame->l3),
		.protocol = version == 4 ? IPPROTO_IPIP : IPPROTO_IPV6,
		.hop_limit = old->hop_limit - 1,
		.traffic_class = old->traffic_class,
		/* IPv4: both addresses; IPv6: a part of the source. */
		.hash = mix(load64(packet + 12), old->session, version),
	};
	const struct outer *outer = list_of(policy, inner.hash, OUTER_GTP);

	if (!outer)
		return drop(frame, REASON_NO_POLICY);
	/* With drop-in, the tenant writes the last segment, which must not be a SID. */
	if (!sid && outer->is_drop_in && is_in_domain(&old->addresses))
		return drop(frame, REASON_EDGE);
	return encapsulate_session(frame, outer, &inner, old, counter);
}

#endif
