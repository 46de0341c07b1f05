/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Forged path MTU messages: ICMPv6 "packet too big" (RFC 8201) from outside the SR domain, about a
 * packet that this node never sent there.
 *
 * The kernel compares the quoted packet with its sockets at most, and a quoted echo request with
 * nothing. It then limits the MTU to the quoted destination for ten minutes, for packets in XDP
 * too. A destination inside the domain would lose all larger packets of all tenants (RFC 8754
 * section 5.1: nodes of the domain trust only each other).
 *
 * Addresses are in network byte order.
 */
#ifndef KAIDO_SRV6_FORGED_ERROR_H
#define KAIDO_SRV6_FORGED_ERROR_H

#include "send.h"
#include "source.h"
#include "too_big.h"

#define PROTOCOL_FRAGMENT 44
/* Number of extension headers before the ICMPv6 header. More than RFC 8200 section 4.1 orders. */
#define EXTENSIONS_MAX 6

/* True if frames with these tags on the port are from outside the SR domain, or go there. */
static __always_inline int is_outside(const struct port *port, struct tags tags)
{
	struct attachment_key key = {port->ifindex, tags.outer, tags.inner};
	const struct attachment *attachment = 0;

	/* VLAN 0 is a priority tag. */
	if (tags.outer && port->tagged && !(port->flags & PORT_EDGE))
		attachment = bpf_map_lookup_elem(&attachments, &key);
	if (!attachment)
		return (port->flags & PORT_OUTSIDE) != 0;
	return attachment->policy ||
	       (attachment->tenant & ~(TENANT_SOURCES | TENANT_OUTSIDE)) > LIMIT_TABLE_TENANTS;
}

/* True if the kernel sends packets to this address out of the SR domain, or nowhere. */
static __noinline int leads_outside(struct xdp_md *ctx, const struct in6_addr *address)
{
	struct bpf_fib_lookup fib = {.family = AF_INET6, .ifindex = ctx->ingress_ifindex};
	const struct upper *upper;
	const struct port *port;
	struct upper direct = {};

	if (!address)
		return 1;
	__builtin_memcpy(fib.ipv6_dst, address, sizeof(fib.ipv6_dst));
	switch (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0)) {
	case BPF_FIB_LKUP_RET_SUCCESS:
	case BPF_FIB_LKUP_RET_NO_NEIGH:
		break;
	case BPF_FIB_LKUP_RET_NOT_FWDED:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
		return 1;
	default: /* for example an encapsulation, which begins inside */
		return 0;
	}
	direct.ifindex = fib.ifindex;
	upper = bpf_map_lookup_elem(&stacked_links, &direct.ifindex);
	if (!upper)
		upper = &direct;
	__u32 slot = upper->ifindex & (LIMIT_PORTS - 1);

	port = bpf_map_lookup_elem(&ports, &slot);
	return port && port->ifindex == upper->ifindex &&
	       is_outside(port, (struct tags){upper->outer, upper->inner});
}

/* Returns the offset of the ICMPv6 header in a frame whose IPv6 header is at `l3`, or 0 if the
 * packet has none. The first fragment has all headers (RFC 7112). */
static __noinline __u32 find_icmp6(struct xdp_md *ctx, __u32 l3)
{
	__u32 at = l3 + sizeof(struct ipv6hdr);
	__u8 next, header[2];
	__be16 offset;

	if (bpf_xdp_load_bytes(ctx, l3 + 6, &next, sizeof(next)))
		return 0;
	for (int i = 0; i < EXTENSIONS_MAX; i++) {
		if (next == IPPROTO_ICMPV6)
			return at;
		if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING &&
		    next != PROTOCOL_FRAGMENT && next != IPPROTO_DSTOPTS)
			return 0;
		if (bpf_xdp_load_bytes(ctx, at, header, sizeof(header)))
			return 0;
		if (next == PROTOCOL_FRAGMENT) {
			if (bpf_xdp_load_bytes(ctx, at + 2, &offset, sizeof(offset)) ||
			    offset & bpf_htons(0xfff8))
				return 0;
			at += 8;
		} else {
			at += (header[1] + 1) * 8;
		}
		next = header[0];
	}
	return 0;
}

/* True if a frame from outside the SR domain has been dropped and counted, since it claims that a
 * packet of this node inside the domain was too big. Called only for frames that the kernel would
 * get. */
static __noinline int is_forged_error(struct xdp_md *ctx, const struct port *port,
				      const struct control *state)
{
	struct frame frame = {
		.ctx = ctx,
		.control = state,
		.port = port,
		.row = bpf_get_smp_processor_id(),
		.l3 = ETH_HLEN,
	};
	struct tags tags = {};
	struct in6_addr quoted;
	__be16 protocol, tag;
	__u32 icmp;
	__u8 type;

	if (!port || !state ||
	    bpf_xdp_load_bytes(ctx, 2 * ETH_ALEN, &protocol, sizeof(protocol)))
		return 0;
	for (int i = 0; i < 2 && is_vlan(protocol); i++) {
		if (bpf_xdp_load_bytes(ctx, frame.l3, &tag, sizeof(tag)) ||
		    bpf_xdp_load_bytes(ctx, frame.l3 + 2, &protocol, sizeof(protocol)))
			return 0;
		if (i)
			tags.inner = bpf_ntohs(tag) & 0xfff;
		else
			tags.outer = bpf_ntohs(tag) & 0xfff;
		frame.l3 += 4;
	}
	if (protocol != bpf_htons(ETH_P_IPV6) || !is_outside(port, tags))
		return 0;
	icmp = find_icmp6(ctx, frame.l3);
	if (!icmp || bpf_xdp_load_bytes(ctx, icmp, &type, sizeof(type)) || type != ICMP6_TOO_BIG ||
	    !is_own(ctx, frame.l3))
		return 0;
	/* Without the address, for example in the first of several fragments, the packet is dropped
	 * as well. */
	if (!bpf_xdp_load_bytes(ctx, icmp + sizeof(struct icmp) + 24, &quoted, sizeof(quoted)) &&
	    leads_outside(ctx, &quoted))
		return 0;
	drop_foreign(&frame, REASON_FORGED_ERROR);
	return 1;
}

#endif
