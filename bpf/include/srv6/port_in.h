/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Packets that a port's XDP program has left to the kernel. Their sender may have left the checksum to a
 * device (PACKET_VNET_HDR of packet(7), virtio), and chooses where it is written: within addresses
 * that the program and the policy rules have checked, or, once the kernel has encapsulated the packet,
 * within the outer header. A frame that XDP redirects natively has lost the note about its checksum.
 */
#ifndef KAIDO_SRV6_PORT_IN_H
#define KAIDO_SRV6_PORT_IN_H

#include "proxy_send.h"

/* Number of tags that are skipped. The kernel takes off any number of priority tags. */
#define MAX_TAGS 8

/* Returns the offset after the link layer's header, which a tunnel may lack, all tags, and the fixed part of
 * an IP header; 0 if there are too many tags. The kernel has already taken off the first tag. */
static __always_inline __u32 end_of_addresses(struct __sk_buff *skb)
{
	const struct sk_buff *kernel = (const void *)skb;
	__be16 protocol = skb->protocol;
	__u32 at = BPF_CORE_READ(kernel, mac_len);

	for (int i = 0; i < MAX_TAGS && is_vlan(protocol); i++) {
		if (bpf_skb_load_bytes(skb, at + 2, &protocol, sizeof(protocol)))
			return 0;
		at += 4;
	}
	if (is_vlan(protocol))
		return 0;
	if (protocol == bpf_htons(ETH_P_IP))
		return at + sizeof(struct iphdr);
	return protocol == bpf_htons(ETH_P_IPV6) ? at + sizeof(struct ipv6hdr) : at;
}

/* The mark of packets that port_in has seen, on ports that netfilter guards (guard.rs): tc passes a packet
 * without its programs that the sender's tc has redirected. netfilter clears it. A veth to another network
 * namespace clears it as well, so that its sender cannot set it. */
#define MARK_OF_PORT 0x10000000

/* Marks a packet of a guarded port. */
static __always_inline void mark_seen(struct __sk_buff *skb)
{
	__u32 slot = skb->ifindex & (LIMIT_PORTS - 1);
	const struct port *port = bpf_map_lookup_elem(&ports, &slot);

	if (port && port->ifindex == skb->ifindex && port->flags & PORT_GUARDED)
		skb->mark |= MARK_OF_PORT;
}

/* Drops a packet whose checksum would be written into its headers. Returns a TC action. */
static __always_inline int refuse_sum_in_headers(struct __sk_buff *skb)
{
	__u32 zero = 0, end;
	const struct control *state;

	if (!is_sum_partial(skb))
		return TC_ACT_UNSPEC;
	end = end_of_addresses(skb);
	if (end && !is_sum_before(skb, end))
		return TC_ACT_UNSPEC;
	state = bpf_map_lookup_elem(&control, &zero);
	return state ? shoot(state, skb, REASON_IRREGULAR) : TC_ACT_SHOT;
}

#endif
