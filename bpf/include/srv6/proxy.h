/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * SR proxies: service functions outside netfilter, reached through an interface (End.AS, End.AD,
 * End.AM).
 *
 *   port --- XDP, into_proxy() --- veth --- tc, into_function() --- `to` --- function
 *   port --- tc, out_of_function() ---------------------------------- `back` -----'
 *
 * into_proxy() returns an XDP action, the other two a TC action. Packet data is in network byte
 * order.
 *
 * The veth turns the packet into an skb, which any interface accepts: a VLAN interface, or a veth
 * without XDP at its peer. The kernel forwards nothing in either direction: of the packets received
 * on `to` and `back`, it only sees neighbor discovery and other link-local protocols.
 */
#ifndef KAIDO_SRV6_PROXY_H
#define KAIDO_SRV6_PROXY_H

#include "end_ad.h"
#include "end_am.h"
#include "end_as.h"

/* Upper part of the destination MAC address of frames from XDP; the lower 16 bits are the proxy's
 * number. It identifies the program, since during a program replacement frames may reach the other
 * program, which numbers its proxies differently. */
static __always_inline __u32 proxy_mac_high(const struct control *state)
{
	return 0x02 | state->program << 8; /* locally administered; for little-endian machines */
}

/* Destination MAC address for functions that accept any, if no tag is needed. */
#define STATION_HIGH bpf_htonl(0x024b4149)
#define STATION_LOW bpf_htons(0x4450)

/* The mark of packets for the kernel, by which netfilter knows that this program has seen them: tc
 * lets a packet past its programs that a tenant's tc has redirected (guard.rs). A veth to another
 * network namespace clears it, so that its sender cannot set it. */
#define MARK_OF_LINK 0x6b616964

/* Neighbor discovery (RFC 4861): types 133 to 137, with an undecremented hop limit. */
#define ND_FIRST 133
#define ND_LAST 137

/* True if the inner packet is unicast and its length matches its header. */
static __always_inline int is_regular(const struct frame *frame, __u32 at, int ipv6)
{
	const void *packet = data_of(frame) + ETH_HLEN + at;
	const struct ipv6hdr *ip6 = packet;
	const struct iphdr *ip4 = packet;

	if (ipv6)
		return (void *)(ip6 + 1) <= end_of(frame) && ip6->version == 6 &&
		       bpf_ntohs(ip6->payload_len) + sizeof(*ip6) == frame->length - at &&
		       !is_special6(high(&ip6->saddr)) && !is_special6(high(&ip6->daddr));
	return (void *)(ip4 + 1) <= end_of(frame) && ip4->version == 4 &&
	       bpf_ntohs(ip4->tot_len) == frame->length - at && !is_special4(ip4->saddr) &&
	       !is_special4(ip4->daddr);
}

/* True if the function exists and returning packets are handled. Not inline: the compiler would
 * keep packet end pointers in 32 bits across the calls. */
static __noinline int has_function_links(__u32 number)
{
	const struct proxy *proxy = bpf_map_lookup_elem(&proxies, &number);

	return proxy && bpf_map_lookup_elem(&function_links, &proxy->to) &&
	       bpf_map_lookup_elem(&function_links, &proxy->back);
}

/* Sends the packet to the function. `length`: as for end_an_nf(). Not inline, for the reasons given
 * in end_b6_encaps.h. */
static __noinline int into_proxy(struct xdp_md *ctx, const struct port *port,
				 const struct sid *sid, __u32 length)
{
	__u32 zero = 0, number = sid->params.proxy.number;
	int led = has_function_links(number);
	struct frame whole = {
		.ctx = ctx,
		.control = bpf_map_lookup_elem(&control, &zero),
		.port = port,
		.row = bpf_get_smp_processor_id(),
		.l3 = ETH_HLEN,
		.length = length,
	};
	const struct frame *frame = &whole;
	const struct ipv6hdr *ip = data_of(frame) + ETH_HLEN;
	const struct srh *srh = (const void *)(ip + 1);
	const struct proxy *proxy = bpf_map_lookup_elem(&proxies, &number);
	enum reason reason = REASON_NO_SRH;
	__u64 tag = 0;
	int failed;

	if (!frame->control)
		return XDP_DROP;
	if ((void *)(ip + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	if (find_srh(frame, ip, &reason) != SRH_GOOD)
		return drop(frame, reason);
	if (!srh->segments_left)
		return drop(frame, REASON_LAST_SEGMENT);
	if (ip->hop_limit <= 1)
		return drop(frame, REASON_HOP_LIMIT);
	if (!proxy || !led)
		return drop(frame, REASON_FUNCTION_DOWN);
	__u32 outer = sizeof(*ip) + 8 + 8 * srh->length;
	int masked = sid->behavior == BEHAVIOR_END_AM;
	int ipv6 = masked || srh->next_header == IPPROTO_IPV6;

	if (outer > LIMIT_OUTER)
		return drop(frame, REASON_NO_HEADROOM);
	/* The kernel does not resolve an IPv4 next hop for an IPv6 packet. */
	if (ipv6 && proxy->family == AF_INET)
		return drop(frame, REASON_WRONG_PAYLOAD);
	if (masked) {
		failed = end_am(frame);
		outer = 0;
	} else {
		if (!ipv6 && srh->next_header != IPPROTO_IPIP)
			return drop(frame, REASON_WRONG_PAYLOAD);
		if (!is_regular(frame, outer, ipv6))
			return drop(frame, REASON_IRREGULAR);
		failed = sid->behavior == BEHAVIOR_END_AD ?
				 end_ad(frame, proxy, outer, ipv6, &tag) :
				 -1;
	}
	if (failed >= 0)
		return drop(frame, failed);
	count_sid(frame, sid);
	if (outer && bpf_xdp_adjust_head(ctx, outer))
		return drop(frame, REASON_NO_HEADROOM);
	void *front = data_of(frame);

	if (front + ETH_HLEN > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	store32(front, proxy_mac_high(frame->control));
	store16(front + 4, number);
	store_tag(front + ETH_ALEN, tag);
	store16(front + 2 * ETH_ALEN, bpf_htons(ipv6 ? ETH_P_IPV6 : ETH_P_IP));
	return bpf_redirect_map(&function_devices, DEVICE_PROXIES, XDP_DROP);
}

/* Sends the packet from the interface to the function. */
static __always_inline int into_function(struct __sk_buff *skb)
{
	void *ethernet = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 zero = 0, mtu = 0, number;
	const struct control *state = bpf_map_lookup_elem(&control, &zero);

	/* Packets that the kernel itself sends on the veth have a group destination. */
	if (!state || ethernet + ETH_HLEN > end || (load32(ethernet) & 0xff) != 0x02)
		return TC_ACT_SHOT;
	if (load32(ethernet) != proxy_mac_high(state))
		return shoot(state, skb, REASON_STATE_LOST);
	number = load16(ethernet + 4);
	const struct proxy *proxy = bpf_map_lookup_elem(&proxies, &number);

	if (!proxy || !proxy->to)
		return shoot(state, skb, REASON_FUNCTION_DOWN);
	__u64 tag = tag_at(ethernet + ETH_ALEN);
	long checked = bpf_check_mtu(skb, proxy->to, &mtu, 0, 0);

	if (checked)
		return shoot(state, skb, checked < 0 ? REASON_FUNCTION_DOWN : REASON_TOO_BIG);
	if (proxy->family) {
		struct bpf_redir_neigh next = {.nh_family = proxy->family};

		__builtin_memcpy(next.ipv6_nh, proxy->via, 16);
		if (tag)
			bpf_set_hash(skb, (__u32)(tag >> 8));
		return bpf_redirect_neigh(proxy->to, &next, sizeof(next), 0);
	}
	if (tag) {
		store_tag(ethernet, tag);
	} else {
		*(__u32 *)ethernet = STATION_HIGH;
		store16(ethernet + 4, STATION_LOW);
	}
	copy_station(ethernet + ETH_ALEN, proxy->station);
	return bpf_redirect(proxy->to, 0);
}

/* Protocols that linux/in.h lacks. */
#define IPPROTO_OSPF 89
#define IPPROTO_VRRP 112

/* Returns what is_of_link() does for a packet of this protocol to a link-local group. The protocols of hosts
 * and routers of the link are the kernel's; datagrams would also reach the services of this node, and its
 * tunnels, such as VXLAN. */
static __always_inline int to_link_group(__u8 protocol)
{
	switch (protocol) {
	case IPPROTO_ICMP:
	case IPPROTO_IGMP:
	case IPPROTO_ICMPV6:
	case IPPROTO_OSPF:
	case IPPROTO_PIM:
	case IPPROTO_VRRP:
		return 1;
	default:
		return -1;
	}
}

/* Returns 1 if an IPv6 packet concerns only this link: a protocol of the link to a link-local group, or
 * neighbor discovery addressed to this node. Returns -1 for other packets to such a group, which are
 * never forwarded, and 0 for all others. */
static __always_inline int is_of_link6(struct __sk_buff *skb)
{
	const struct ipv6hdr *ip = (void *)(long)skb->data + ETH_HLEN;
	const __u8 *type = (const void *)(ip + 1);
	struct bpf_fib_lookup fib = {.family = AF_INET6, .ifindex = skb->ifindex};

	if ((void *)(type + 1) > (void *)(long)skb->data_end)
		return 0;
	__u16 first = bpf_ntohs((__u16)high(&ip->daddr));

	/* MLD has a router alert in a hop-by-hop header (RFC 3810 section 5). */
	if (first == 0xff02)
		return to_link_group(ip->nexthdr == IPPROTO_HOPOPTS ? *type : ip->nexthdr);
	if (ip->nexthdr != IPPROTO_ICMPV6 || ip->hop_limit != 255 || *type < ND_FIRST ||
	    *type > ND_LAST)
		return 0;
	if ((first & 0xffc0) == 0xfe80)
		return 1;
	__builtin_memcpy(fib.ipv6_src, &ip->saddr, 16);
	__builtin_memcpy(fib.ipv6_dst, &ip->daddr, 16);
	long answer = bpf_fib_lookup(skb, &fib, sizeof(fib), 0);

	return answer == BPF_FIB_LKUP_RET_NOT_FWDED || answer == BPF_FIB_LKUP_RET_FWD_DISABLED;
}

/* Returns 1 if the kernel must handle the packet: neighbor and group protocols of the link; -1 for other
 * packets to link-local groups, and 0 for all others. */
static __always_inline int is_of_link(struct __sk_buff *skb)
{
	const struct iphdr *ip = (void *)(long)skb->data + ETH_HLEN;

	if (skb->protocol == bpf_htons(ETH_P_ARP))
		return 1;
	if (skb->protocol == bpf_htons(ETH_P_IPV6))
		return is_of_link6(skb);
	/* 224.0.0.0/24 (RFC 5771 section 4). */
	if (skb->protocol != bpf_htons(ETH_P_IP) ||
	    (void *)(ip + 1) > (void *)(long)skb->data_end ||
	    (ip->daddr & bpf_htonl(0xffffff00)) != bpf_htonl(0xe0000000))
		return 0;
	return to_link_group(ip->protocol);
}

/* Trims Ethernet padding to the length given in the IP header. Returns 0, or an error if the frame
 * is shorter than that. */
static __always_inline int trim(struct __sk_buff *skb)
{
	const struct ipv6hdr *ip6 = (void *)(long)skb->data + ETH_HLEN;
	const struct iphdr *ip4 = (const void *)ip6;
	const void *end = (void *)(long)skb->data_end;
	__u32 length;

	/* GSO packets have no padding, and their header length may be invalid. */
	if (skb->gso_segs > 1)
		return 0;
	if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		if ((void *)(ip6 + 1) > end)
			return -1;
		length = ETH_HLEN + sizeof(*ip6) + bpf_ntohs(ip6->payload_len);
	} else {
		if ((void *)(ip4 + 1) > end)
			return -1;
		length = ETH_HLEN + bpf_ntohs(ip4->tot_len);
	}
	if (length > skb->len)
		return -1;
	return length == skb->len ? 0 : bpf_skb_change_tail(skb, length, 0);
}

/* Handles packets received on `to` or `back`. Tagged frames belong to an interface stacked on this
 * one, except for priority tags (802.1Q), which the kernel treats as untagged. */
static __always_inline int out_of_function(struct __sk_buff *skb)
{
	__u32 zero = 0, interface = skb->ifindex, number;
	const struct control *state = bpf_map_lookup_elem(&control, &zero);
	const struct back *back = bpf_map_lookup_elem(&return_links, &interface);

	if (!state)
		return TC_ACT_SHOT;
	if (skb->vlan_present && (skb->vlan_tci & 0xfff))
		return TC_ACT_UNSPEC;
	int of_link = is_of_link(skb);

	if (of_link < 0)
		return shoot(state, skb, REASON_IRREGULAR);
	if (of_link) {
		skb->mark = MARK_OF_LINK;
		return TC_ACT_UNSPEC;
	}
	if (skb->vlan_present && bpf_skb_vlan_pop(skb))
		return shoot(state, skb, REASON_TRUNCATED);
	/* The pop makes a second tag the packet's own, which would leave the node with it. */
	if (skb->vlan_present || is_sum_before(skb, ETH_HLEN))
		return shoot(state, skb, REASON_IRREGULAR);
	if (!back || (skb->protocol != bpf_htons(ETH_P_IPV6) &&
		      skb->protocol != bpf_htons(ETH_P_IP)))
		return shoot(state, skb, REASON_STATE_LOST);
	if (trim(skb))
		return shoot(state, skb, REASON_TRUNCATED);
	if (back->ring)
		return end_ad_back(skb, state, back->ring - 1);
	number = back->proxy;
	const struct proxy *proxy = bpf_map_lookup_elem(&proxies, &number);

	if (!number || !proxy)
		return shoot(state, skb, REASON_STATE_LOST);
	if (proxy->behavior == BEHAVIOR_END_AM)
		return end_am_back(skb, state, proxy);
	if (proxy->behavior == BEHAVIOR_END_AS)
		return end_as_back(skb, state, proxy);
	return shoot(state, skb, REASON_STATE_LOST);
}

#endif
