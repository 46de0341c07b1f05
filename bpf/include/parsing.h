/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Parses the addresses, protocol and ports of a packet, inside an SRv6 encapsulation if there is
 * one (RFC 8754 section 2).
 *
 * Returns 0, or -1 if the packet is not IP or is truncated. Addresses are in network byte order,
 * ports in host byte order. Ports are 0 if the protocol has none, and in all fragments except the
 * first.
 */
#ifndef KAIDO_PARSING_H
#define KAIDO_PARSING_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ROUTING_TYPE_SRH 4
#define IPV4_OFFSET_MASK 0x1fff

struct packet {
	__be32 src[4]; /* IPv4 in the first word, the rest zero */
	__be32 dst[4];
	__u16 src_port;
	__u16 dst_port;
	__u8 version;
	__u8 protocol;
	__u8 dscp;
};

/* The first eight bytes of every routing header (RFC 8200 section 4.4). */
struct routing_header {
	__u8 next_header;
	__u8 length; /* in units of 8 octets, not including the first 8 */
	__u8 type;
	__u8 segments_left;
	__u32 rest;
};

static __always_inline int parse_ports(struct __sk_buff *skb, __u32 at, struct packet *packet)
{
	__be16 ports[2];

	if (packet->protocol != IPPROTO_TCP && packet->protocol != IPPROTO_UDP &&
	    packet->protocol != IPPROTO_SCTP)
		return 0;
	if (bpf_skb_load_bytes(skb, at, ports, sizeof(ports)))
		return -1;
	packet->src_port = bpf_ntohs(ports[0]);
	packet->dst_port = bpf_ntohs(ports[1]);
	return 0;
}

static __always_inline int parse_ipv4(struct __sk_buff *skb, __u32 at, struct packet *packet)
{
	struct iphdr ip;

	if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)))
		return -1;
	packet->version = 4;
	packet->src[0] = ip.saddr;
	packet->dst[0] = ip.daddr;
	packet->protocol = ip.protocol;
	packet->dscp = ip.tos >> 2;
	if (bpf_ntohs(ip.frag_off) & IPV4_OFFSET_MASK)
		return 0;
	return parse_ports(skb, at + ip.ihl * 4, packet);
}

static __always_inline int parse_ipv6(struct __sk_buff *skb, __u32 at, struct packet *packet,
				      const struct ipv6hdr *ip)
{
	packet->version = 6;
	__builtin_memcpy(packet->src, &ip->saddr, sizeof(packet->src));
	__builtin_memcpy(packet->dst, &ip->daddr, sizeof(packet->dst));
	packet->protocol = ip->nexthdr;
	packet->dscp = (ip->priority << 2) | (ip->flow_lbl[0] >> 6);
	return parse_ports(skb, at + sizeof(*ip), packet);
}

/* Parses the packet at `at`, the payload of an outer IPv6 header with next header `next`. */
static __always_inline int parse_inner(struct __sk_buff *skb, __u8 next, __u32 at,
				       struct packet *packet)
{
	struct ipv6hdr ip;

	if (next == IPPROTO_IPIP)
		return parse_ipv4(skb, at, packet);
	if (next != IPPROTO_IPV6 || bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)))
		return -1;
	return parse_ipv6(skb, at, packet, &ip);
}

/*
 * Parses a packet. An SRv6 encapsulation is skipped: one with an SRH, or one without, reduced to a
 * single segment (RFC 8986 section 5.2).
 */
static __always_inline int parse_packet(struct __sk_buff *skb, struct packet *packet)
{
	struct routing_header routing;
	struct ipv6hdr ip;
	__u32 at = sizeof(struct ethhdr);

	if (skb->protocol == bpf_htons(ETH_P_IP))
		return parse_ipv4(skb, at, packet);
	if (skb->protocol != bpf_htons(ETH_P_IPV6) || bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)))
		return -1;
	at += sizeof(ip);
	if (ip.nexthdr == IPPROTO_IPIP || ip.nexthdr == IPPROTO_IPV6)
		return parse_inner(skb, ip.nexthdr, at, packet);
	if (ip.nexthdr != IPPROTO_ROUTING)
		return parse_ipv6(skb, at - sizeof(ip), packet, &ip);
	if (bpf_skb_load_bytes(skb, at, &routing, sizeof(routing)) ||
	    routing.type != ROUTING_TYPE_SRH)
		return -1;
	return parse_inner(skb, routing.next_header, at + (routing.length + 1) * 8, packet);
}

#endif
