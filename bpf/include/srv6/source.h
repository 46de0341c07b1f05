/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Source address checks: of packets to SIDs (RFC 8754 section 5.1), and of tenants' packets.
 *
 * Predicates return nonzero if true. Addresses are in network byte order. None of this runs unless
 * the configuration asks for it.
 */
#ifndef KAIDO_SRV6_SOURCE_H
#define KAIDO_SRV6_SOURCE_H

#include "prefix.h"

/* ICMPv6 types (RFC 4861 section 4). */
#define ND_ROUTER_SOLICITATION 133
#define ND_REDIRECT 137

/* True if an address is in one of the owner's `sources`. IPv4 is in the first 4 bytes of `high`.
 * Not inline: the key would use stack space of packets that need no lookup. */
static __noinline int is_source(__u32 owner, __u64 high, __u64 low)
{
	struct source key = {
		.length = owner & OWNER_IPV6 ? 32 + 128 : 32 + 32,
		.owner = owner,
		.address = {high, low},
	};

	return bpf_map_lookup_elem(&sources, &key) != 0;
}

/* True if the destination MAC address is that of the port. */
static __always_inline int is_for(const struct port *port, const void *ethernet)
{
	return load32(ethernet) == load32(port->mac) &&
	       load16(ethernet + 4) == load16(port->mac + 4);
}

/* True if the destination MAC address is that of a VLAN interface for these frames. */
static __always_inline int is_for_vlan(const struct attachment *attachment, const void *ethernet)
{
	for (int i = 0; i < 4; i++) {
		const __u8 *mac = attachment->macs[i];

		if (load32(ethernet) == load32(mac) && load16(ethernet + 4) == load16(mac + 4))
			return 1;
	}
	return 0;
}

/* Drops and counts a packet at the edge of the domain or on a port with `sources`. Returns nonzero
 * if it was dropped. This affects packets to a SID from outside, and, at the edge, packets with a source
 * inside the domain, which other nodes would trust. */
static __noinline int drop_refused(struct xdp_md *ctx, const struct port *port,
				 const struct control *state)
{
	struct frame frame = {
		.ctx = ctx,
		.control = state,
		.port = port,
		.row = bpf_get_smp_processor_id(),
	};
	const void *ethernet = data_of(&frame);
	const struct ipv6hdr *ip = ethernet + ETH_HLEN;
	int ours, is_port, reason = -1;

	if (!state || !port || (void *)(ip + 1) > end_of(&frame) ||
	    (port->flags & (PORT_CLOSED | PORT_EDGE)) == PORT_CLOSED ||
	    ethertype_of(ethernet) != bpf_htons(ETH_P_IPV6))
		return 0;
	/* At the edge, interfaces stacked on the port (macvlan) have MAC addresses of their own. */
	is_port = is_for(port, ethernet);
	if (!is_port && !(port->flags & PORT_EDGE))
		return 0;
	frame.length = sizeof(*ip) + bpf_ntohs(ip->payload_len);
	/* Bypasses the cache of found.h: its functions would exceed the stack limit of the call
	 * chain. */
	__u64 dst0 = high(&ip->daddr), dst1 = low(&ip->daddr);

	ours = port->flags & PORT_SOURCES &&
	       is_source(OWNER_IPV6, high(&ip->saddr), low(&ip->saddr));
	if (port->flags & PORT_EDGE) {
		if (search_sid(dst0, dst1))
			reason = REASON_EDGE;
		else if (ours && is_port)
			reason = REASON_FOREIGN_SOURCE;
	} else if (!ours && search_sid(dst0, dst1)) {
		reason = REASON_FOREIGN_SOURCE;
	}
	if (reason < 0)
		return 0;
	drop(&frame, reason);
	return 1;
}

/* True if a tenant's packet has a source inside the SR domain, which other nodes would trust. */
static __noinline int is_spoofed(struct xdp_md *ctx, __u32 l3, __be16 protocol)
{
	const struct ipv6hdr *ip;

	if (protocol != bpf_htons(ETH_P_IPV6) || l3 > ETH_HLEN + 8)
		return 0;
	ip = (void *)(long)ctx->data + l3;
	if ((void *)(ip + 1) > (void *)(long)ctx->data_end)
		return 0;
	return is_source(OWNER_IPV6, high(&ip->saddr), low(&ip->saddr));
}

/* True if the destination is an address of this node. */
static __noinline int is_own(struct xdp_md *ctx, __u32 l3)
{
	struct bpf_fib_lookup fib = {.family = AF_INET6, .ifindex = ctx->ingress_ifindex};
	const struct ipv6hdr *ip;

	if (l3 > ETH_HLEN + 8)
		return 0;
	ip = (void *)(long)ctx->data + l3;
	if ((void *)(ip + 1) > (void *)(long)ctx->data_end)
		return 0;
	__builtin_memcpy(fib.ipv6_dst, &ip->daddr, sizeof(fib.ipv6_dst));
	/* The rule for local addresses precedes all others. */
	return bpf_fib_lookup(ctx, &fib, sizeof(fib), 0) == BPF_FIB_LKUP_RET_NOT_FWDED;
}

/* True for neighbor discovery (RFC 4861 section 4). Its receivers reject any other hop limit. */
static __always_inline int is_neighbor_discovery(const struct ipv6hdr *ip, const void *end)
{
	const __u8 *type = (const void *)(ip + 1);

	return ip->nexthdr == IPPROTO_ICMPV6 && ip->hop_limit == 255 && (void *)(type + 1) <= end &&
	       *type >= ND_ROUTER_SOLICITATION && *type <= ND_REDIRECT;
}

/* True for a link-local address. */
static __always_inline int is_link_local6(const struct in6_addr *address)
{
	return (address->s6_addr16[0] & bpf_htons(0xffc0)) == bpf_htons(0xfe80);
}

/* True for an IPv4 packet of the link without an address of its sender's (DHCP, IGMP). */
static __always_inline int is_of_link4(const struct iphdr *ip)
{
	return !ip->saddr &&
	       (ip->daddr == ~0u || (ip->daddr & bpf_htonl(0xf0000000)) == bpf_htonl(0xe0000000));
}

/* The same for the source of an IPv6 packet, and for its destination. */
static __always_inline int is_source_of_link6(const struct ipv6hdr *ip)
{
	return is_link_local6(&ip->saddr) || !(high(&ip->saddr) | low(&ip->saddr));
}

static __always_inline int is_to_link6(const struct ipv6hdr *ip)
{
	return is_link_local6(&ip->daddr) || ip->daddr.s6_addr[0] == 0xff;
}

/* True if a tenant's packet has a source that does not belong to the tenant. Link-scope protocols
 * may use an unspecified or link-local source: neighbor discovery (RFC 4861), DHCP. Only
 * neighbor discovery also sends such packets to a global address, which is that of the neighbor
 * (section 7.3.3). */
static __noinline int is_foreign(struct xdp_md *ctx, __u32 l3, __be16 protocol, __u32 tenant)
{
	const void *end = (void *)(long)ctx->data_end;
	const struct ipv6hdr *ip6;
	const struct iphdr *ip4;

	if (l3 > ETH_HLEN + 8)
		return 1;
	ip6 = (void *)(long)ctx->data + l3;
	ip4 = (const void *)ip6;
	if (protocol == bpf_htons(ETH_P_IP) && (void *)(ip4 + 1) <= end) {
		if (is_of_link4(ip4))
			return 0;
		return !is_source(tenant, ip4->saddr, 0);
	}
	if (protocol == bpf_htons(ETH_P_IPV6) && (void *)(ip6 + 1) <= end) {
		if (is_source_of_link6(ip6)) {
			if (is_to_link6(ip6))
				return 0;
			return !is_neighbor_discovery(ip6, end) || !is_own(ctx, l3);
		}
		return !is_source(tenant | OWNER_IPV6, high(&ip6->saddr), low(&ip6->saddr));
	}
	return protocol == bpf_htons(ETH_P_IP) || protocol == bpf_htons(ETH_P_IPV6);
}

static __always_inline int drop_foreign(struct frame *frame, enum reason reason)
{
	/* The layer 3 length according to the frame, since no header has been parsed. */
	frame->length = bpf_xdp_get_buff_len(frame->ctx) - frame->l3;
	return drop(frame, reason);
}

#endif
