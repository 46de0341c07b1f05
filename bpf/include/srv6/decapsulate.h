/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * End.DX4, End.DX6, End.DT4, End.DT6, End.DT46 (RFC 8986 sections 4.4 to 4.8) and USD (section
 * 4.16.3): removes the outer header and its SRH, and forwards the inner packet.
 *
 * Functions return an XDP action unless stated otherwise.
 *
 * As in the kernel, nothing is copied from the outer to the inner header, and the inner hop limit
 * is decremented.
 */
#ifndef KAIDO_SRV6_DECAPSULATE_H
#define KAIDO_SRV6_DECAPSULATE_H

#include "found.h"
#include "send.h"
#include "srh.h"

/* Returns the VLAN tags of the outgoing frame: those of the SID, or those of the interface that the
 * route selected. */
static __always_inline struct tags inner_tags(const struct sid *sid,
					      const struct adjacency *adjacency)
{
	return sid->outer ? (struct tags){sid->outer, sid->inner} : tags_of(adjacency);
}

/* Handles a payload that the SID does not decapsulate. If it is an extension header, a valid
 * payload may follow. */
static __always_inline int wrong_payload(const struct frame *frame, const struct sid *sid,
					 __u8 protocol)
{
	if (is_extension(protocol))
		return leave(frame, REASON_EXTENSION, is_in_kernel(sid));
	return drop(frame, REASON_WRONG_PAYLOAD);
}

/* `at`: offset of the IPv4 packet from the start of layer 3. */
static __always_inline int decapsulate_ipv4(const struct frame *frame, const struct sid *sid, __u32 at)
{
	const struct iphdr *ip = data_of(frame) + ETH_HLEN + at;
	__be32 dst = has_next_hop(sid) ? sid->params.next_hop4 : 0;
	int reason;

	if ((void *)(ip + 1) > end_of(frame))
		return leave(frame, REASON_TRUNCATED, is_in_kernel(sid));
	if (ip->version != 4 || ip->ihl != 5 || bpf_ntohs(ip->tot_len) != frame->length - at ||
	    is_special4(ip->saddr) || is_special4(ip->daddr))
		return leave(frame, REASON_IRREGULAR, is_in_kernel(sid));
	if (ip->ttl <= 1)
		return leave(frame, REASON_HOP_LIMIT, is_in_kernel(sid));
	const struct adjacency *adjacency =
		route(frame, dst ? dst : ip->daddr, 0, ip->saddr, 0,
		      ROUTE_FLOW(ip->tos, ip->protocol), table_of(frame, sid, AF_INET), &reason);

	if (!adjacency)
		return leave(frame, reason, is_in_kernel(sid));
	if (frame->length - at > adjacency->mtu)
		return leave(frame, REASON_TOO_BIG, is_in_kernel(sid));
	struct tags tags = inner_tags(sid, adjacency);

	if (cut_head(frame, at, tags))
		return leave(frame, REASON_NO_HEADROOM, is_in_kernel(sid));
	count_sid(frame, sid);
	struct iphdr *inner = data_of(frame) + link_header(tags);

	if ((void *)(inner + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	/* As in the kernel's ip_decrease_ttl(): RFC 1624 for a decrement of the first byte of a
	 * word. */
	__u32 check = inner->check + bpf_htons(0x0100);

	inner->check = check + (check >= 0xffff);
	inner->ttl--;
	return send(frame, adjacency, tags, bpf_htons(ETH_P_IP));
}

static __always_inline int decapsulate_ipv6(const struct frame *frame, const struct sid *sid, __u32 at)
{
	const struct ipv6hdr *ip = data_of(frame) + ETH_HLEN + at;
	__u64 dst0 = 0, dst1 = 0;
	int reason;

	if ((void *)(ip + 1) > end_of(frame))
		return leave(frame, REASON_TRUNCATED, is_in_kernel(sid));
	if (ip->version != 6 ||
	    bpf_ntohs(ip->payload_len) + sizeof(*ip) != frame->length - at ||
	    ip->nexthdr == IPPROTO_HOPOPTS || is_special6(high(&ip->saddr)) ||
	    is_special6(high(&ip->daddr)))
		return leave(frame, REASON_IRREGULAR, is_in_kernel(sid));
	if (ip->hop_limit <= 1)
		return leave(frame, REASON_HOP_LIMIT, is_in_kernel(sid));
	if (has_next_hop(sid)) {
		dst0 = sid->params.next_hop6[0];
		dst1 = sid->params.next_hop6[1];
	}
	if (!dst0 && !dst1) {
		dst0 = high(&ip->daddr);
		dst1 = low(&ip->daddr);
	}
	const struct adjacency *adjacency =
		route(frame, dst0, dst1, high(&ip->saddr), low(&ip->saddr),
		      ROUTE_FLOW(*(__be32 *)ip & FLOW_MASK, ip->nexthdr),
		      table_of(frame, sid, AF_INET6), &reason);

	if (!adjacency)
		return leave(frame, reason, is_in_kernel(sid));
	if (frame->length - at > adjacency->mtu)
		return leave(frame, REASON_TOO_BIG, is_in_kernel(sid));
	struct tags tags = inner_tags(sid, adjacency);

	if (cut_head(frame, at, tags))
		return leave(frame, REASON_NO_HEADROOM, is_in_kernel(sid));
	count_sid(frame, sid);
	struct ipv6hdr *inner = data_of(frame) + link_header(tags);

	if ((void *)(inner + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	inner->hop_limit--;
	return send(frame, adjacency, tags, bpf_htons(ETH_P_IPV6));
}

/* Families of inner packets that a SID decapsulates. */
enum inner_family {
	INNER_IPV4 = 1,
	INNER_IPV6 = 2,
};

static __always_inline int inner_families(__u32 behavior)
{
	switch (behavior) {
	case BEHAVIOR_END_DX4:
	case BEHAVIOR_END_DT4:
		return INNER_IPV4;
	case BEHAVIOR_END_DX6:
	case BEHAVIOR_END_DT6:
		return INNER_IPV6;
	default:
		return INNER_IPV4 | INNER_IPV6;
	}
}

/* `at`: offset of the inner packet from the start of layer 3. `protocol`: its type. `families`:
 * those of enum inner_family that the SID decapsulates. */
static __always_inline int decapsulate_packet(const struct frame *frame, const struct sid *sid,
					      __u8 protocol, __u32 at, int families)
{
	if (protocol == IPPROTO_IPIP && families & INNER_IPV4)
		return decapsulate_ipv4(frame, sid, at);
	if (protocol == IPPROTO_IPV6 && families & INNER_IPV6)
		return decapsulate_ipv6(frame, sid, at);
	return wrong_payload(frame, sid, protocol);
}

/* End.DX2V (RFC 8986 section 4.10): returns the egress interface for the first VLAN tag of the
 * inner frame at `at`; 0 without a tag, or without an entry for it. */
static __always_inline __u32 port_of_vlan(const struct frame *frame, const struct sid *sid,
					  __u32 at)
{
	const void *ethernet = data_of(frame) + frame->l3 + at;
	const struct vlan_header *tag = ethernet + ETH_HLEN;

	if ((void *)(tag + 1) > end_of(frame))
		return 0;
	if (!is_vlan(ethertype_of(ethernet)))
		return 0;
	__u16 vlan = bpf_ntohs(tag->tag) & 0xfff;

	for (int i = 0; i < 4; i++) {
		__u32 slot = sid->params.vlans[i].port;

		if (!vlan || sid->params.vlans[i].vlan != vlan)
			continue;
		const struct port *port = bpf_map_lookup_elem(&ports, &slot);

		return port ? port->ifindex : 0;
	}
	return 0;
}

/* End.DX2 (RFC 8986 section 4.9): sends the inner frame unchanged from the SID's port. End.DX2V:
 * from the port of its VLAN. */
static __always_inline int decapsulate_frame(const struct frame *frame, const struct sid *sid,
					__u8 protocol, __u32 at)
{
	__u32 device = sid->params.port;

	if (protocol != IPPROTO_ETHERNET)
		return wrong_payload(frame, sid, protocol);
	if (frame->length < at + ETH_HLEN)
		return drop(frame, REASON_TRUNCATED);
	if (sid->behavior == BEHAVIOR_END_DX2V) {
		device = port_of_vlan(frame, sid, at);
		if (!device)
			return drop(frame, REASON_NO_ENTRY);
	}
	__u32 slot = device & (LIMIT_PORTS - 1);

	/* Checked here, since the redirect would fail silently. For length 0 the helper would use
	 * the frame's length. */
	__u32 mtu = frame->length - at - ETH_HLEN;

	mtu = mtu ? mtu : 1;
	long checked = bpf_check_mtu(frame->ctx, device, &mtu, 0, 0);

	if (checked)
		return leave(frame, checked < 0 ? REASON_OTHER_PORT : REASON_TOO_BIG,
			     is_in_kernel(sid));
	if (bpf_xdp_adjust_head(frame->ctx, frame->l3 + at))
		return leave(frame, REASON_NO_HEADROOM, is_in_kernel(sid));
	if (bpf_redirect_map(&devices, slot, XDP_DROP) != XDP_REDIRECT)
		return drop(frame, REASON_OTHER_PORT);
	count_sid(frame, sid);
	return XDP_REDIRECT;
}

/* True for End.DX* and End.DT*. */
static __always_inline int decapsulates(__u32 behavior)
{
	switch (behavior) {
	case BEHAVIOR_END_DX2:
	case BEHAVIOR_END_DX2V:
	case BEHAVIOR_END_DX4:
	case BEHAVIOR_END_DX6:
	case BEHAVIOR_END_DT4:
	case BEHAVIOR_END_DT6:
	case BEHAVIOR_END_DT46:
		return 1;
	default:
		return 0;
	}
}

/* Removes the outer header for a SID with End.DX* or End.DT*. `protocol`: type of the payload at
 * offset `at`. */
static __always_inline int decapsulate_payload(const struct frame *frame, const struct sid *sid,
					   __u8 protocol, __u32 at)
{
	__u8 behavior = sid->behavior;

	if (behavior == BEHAVIOR_END_DX2 || behavior == BEHAVIOR_END_DX2V)
		return decapsulate_frame(frame, sid, protocol, at);
	return decapsulate_packet(frame, sid, protocol, at, inner_families(behavior));
}

#endif
