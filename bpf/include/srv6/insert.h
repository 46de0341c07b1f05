/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * H.Insert and End.B6.Insert (draft-filsfils-spring-srv6-net-pgm-insertion): inserts an SRH after the IPv6
 * header, before an SRH that is there. Its last segment is the packet's destination.
 *
 * insert_srh() returns an XDP action. It is not static: see route.h. As in the kernel, End.B6.Insert
 * leaves the packet's own SRH as it is.
 */
#ifndef KAIDO_SRV6_INSERT_H
#define KAIDO_SRV6_INSERT_H

#include "encapsulate.h"
#include "sid.h"
#include "source.h"
#include "srh.h"

/* Moves the IPv6 header to the front of the frame, from `added` bytes after it, and writes the SRH of
 * `outer` behind it. Returns the header, or null if the frame is too short. */
static __always_inline struct ipv6hdr *write_inserted(const struct frame *frame,
						      const struct outer *outer, __u32 front,
						      __u32 added)
{
	const void *end = end_of(frame);
	__u64 *to = data_of(frame) + front;
	const __u64 *from = (void *)to + (added & 0xff), *list = (const __u64 *)outer->header + 5;
	struct ipv6hdr *ip = (void *)to;

	/* The verifier knows the bounds of the register that is compared. */
	asm volatile("" : "+r"(from));
	if ((void *)(from + 5) > end || (void *)(ip + 1) > end)
		return 0;
	/* Upward: the new header may overlap the old one. */
	for (int i = 0; i < 5; i++)
		to[i] = from[i];
	for (int i = 0; i < LIMIT_OUTER / 8 - 5; i++) {
		if (i * 8 >= added)
			break;
		if ((void *)(to + 5 + i + 1) > end)
			return 0;
		to[5 + i] = list[i];
	}
	return ip;
}

/* `sid`: null for a tenant's packet. `number`: of the policy. `place`: offset of layer 3 in the high 8
 * bits, and the packet's length. */
__noinline int insert_srh(struct xdp_md *ctx, const struct port *port, const struct sid *sid,
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

	if (!port || !frame->control || !policy || frame->l3 > ETH_HLEN + 8)
		return XDP_DROP;
	const struct ipv6hdr *ip = data_of(frame) + frame->l3;
	int in_kernel = sid ? is_in_kernel(sid) : policy->in_kernel;
	__u32 counter = sid ? sid->counter : policy->counter;
	int reason;

	if ((void *)(ip + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	if (ip->version != 6)
		return leave(frame, REASON_IRREGULAR, in_kernel);
	if (sid) {
		const struct srh *srh = (const void *)(ip + 1);
		enum reason why = REASON_NO_SRH;
		enum srh_found found = find_srh(frame, ip, &why);

		if (found == SRH_OTHER)
			return leave_srh(frame, why, in_kernel);
		if (found == SRH_NONE || !srh->segments_left)
			return leave(frame, found == SRH_NONE ? why : REASON_LAST_SEGMENT,
				     in_kernel);
	}
	/* A tenant's destination, the last segment, must not be a SID. Routes of the kernel steer packets of
	 * the domain, too. */
	if (!sid && !in_kernel && is_source(OWNER_IPV6, high(&ip->daddr), low(&ip->daddr)))
		return drop(frame, REASON_EDGE);
	if (ip->hop_limit <= 1)
		return leave(frame, REASON_HOP_LIMIT, in_kernel);
	__u64 dst0 = high(&ip->daddr), dst1 = low(&ip->daddr);
	__u8 next_header = ip->nexthdr;
	const struct outer *outer =
		list_of(policy,
			mix(high(&ip->saddr) ^ low(&ip->saddr), *(__be32 *)ip & FLOW_MASK,
			    dst0 ^ dst1),
			OUTER_INSERT);

	if (!outer || outer->length <= sizeof(*ip) || outer->length > LIMIT_OUTER)
		return leave(frame, REASON_NO_POLICY, in_kernel);
	const struct ipv6hdr *header = (const void *)outer->header;
	__u32 added = outer->length - sizeof(*ip);
	const struct adjacency *adjacency =
		route(frame, high(&header->daddr), low(&header->daddr), high(&ip->saddr),
		      low(&ip->saddr), ROUTE_FLOW(*(__be32 *)ip & FLOW_MASK, IPPROTO_ROUTING),
		      ROUTE_TABLE(AF_INET6, frame->port->ifindex, 0), &reason);

	if (!adjacency)
		return leave(frame, reason, in_kernel);
	if (frame->length + added > adjacency->mtu)
		return leave(frame, REASON_TOO_BIG, in_kernel);
	struct tags tags = tags_of(adjacency);

	if (cut_head(frame, -(int)added, tags))
		return leave(frame, REASON_NO_HEADROOM, in_kernel);
	struct ipv6hdr *to = write_inserted(frame, outer, link_header(tags), added);
	struct srh *srh = (void *)(to + 1);

	if (!to || (void *)(srh + 3) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	to->nexthdr = IPPROTO_ROUTING;
	to->payload_len = bpf_htons(frame->length + added - sizeof(*to));
	to->hop_limit--;
	((__u64 *)&to->daddr)[0] = high(&header->daddr);
	((__u64 *)&to->daddr)[1] = low(&header->daddr);
	srh->next_header = next_header;
	store64(srh + 1, dst0);
	store64(srh + 2, dst1);
	add_to(frame, counter);
	return send(frame, adjacency, tags, bpf_htons(ETH_P_IPV6));
}

#endif
