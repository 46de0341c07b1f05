/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Path MTU discovery at the headend: if a packet exceeds the path MTU once it has an outer header,
 * the sender is notified of the MTU (RFC 1191 section 4, RFC 4443 section 3.2).
 *
 * tell_too_big() returns 1, 0 or -1, see there. Addresses are in network byte order, lengths and
 * MTUs in host byte order.
 *
 * The kernel does not do this: it encapsulates first and notifies the outer source, which is this
 * node. All other ICMP errors are left to the kernel if it has the same policy.
 */
#ifndef KAIDO_SRV6_TOO_BIG_H
#define KAIDO_SRV6_TOO_BIG_H

#include "frame.h"

/* ICMP header (RFC 792, RFC 4443 section 2.1). The use of the last word depends on the type. */
struct icmp {
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be32 rest;
};

#define ICMP_ECHO_REPLY 0
#define ICMP_UNREACHABLE 3
#define ICMP_FRAGMENTATION_NEEDED 4
#define ICMP_REDIRECT 5
#define ICMP_ECHO 8
#define ICMP_TIME_EXCEEDED 11
#define ICMP_PARAMETER_PROBLEM 12
#define ICMP6_TOO_BIG 2
#define ICMP6_FIRST_INFORMATIONAL 128

/* Number of bytes of the packet to quote. RFC 1812 section 4.3.2.3 allows 576 bytes in all, and
 * bpf_csum_diff() accepts 512. A packet that is too big is longer, except on unusual links. */
#define QUOTE 512
/* IPv6 minimum MTU (RFC 8200 section 5). */
#define SMALLEST_MTU 1280
#define IPV4_DONT_FRAGMENT bpf_htons(0x4000)
/* Dummy address for a router without an IPv4 address (RFC 7600 section 4.8). */
#define DUMMY_ADDRESS bpf_htonl(0xc0000008)

/* Rate limit: maximum number of ICMP errors per CPU in 2^20 ns. */
#define ICMP_RATE_MAX 16

struct icmp_limit {
	__u64 since; /* in units of 2^20 ns */
	__u64 count;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct icmp_limit);
} icmp_limit SEC(".maps");

/* Parameters of the ICMP error. */
struct too_big {
	__u32 l3;     /* offset of the packet in the frame */
	__u32 length; /* of the packet */
	__u32 mtu;    /* to report */
	__u32 ipv6;   /* nonzero if the packet is IPv6 */
	__u64 source[2]; /* source address of the ICMPv6 error */
};

/* The link-layer header of the original frame. */
struct link {
	__u64 stations;
	__u32 stations_end;
	__u64 tags; /* the bytes after the addresses: ethertype, or VLAN tags and ethertype */
	__u16 type;
};

static __always_inline int within_rate(void)
{
	__u32 zero = 0;
	struct icmp_limit *state = bpf_map_lookup_elem(&icmp_limit, &zero);
	__u64 now = bpf_ktime_get_ns() >> 20;

	if (!state)
		return 0;
	if (state->since != now) {
		state->since = now;
		state->count = 0;
	}
	return state->count++ < ICMP_RATE_MAX;
}

/* True if an ICMP error may be sent about this packet: not about ICMP errors, and only about first
 * fragments (RFC 1122 section 3.2.2, RFC 4443 section 2.4). */
static __always_inline int may_send_error(const void *packet, const void *end, int ipv6)
{
	if (ipv6) {
		const struct ipv6hdr *ip = packet;
		const struct icmp *icmp = (const void *)(ip + 1);

		if ((void *)(ip + 1) > end)
			return 0;
		/* An ICMP error may follow extension headers. Searching for it is not worth the
		 * cost. */
		if (ip->nexthdr == IPPROTO_DSTOPTS || ip->nexthdr == IPPROTO_ROUTING)
			return 0;
		if (ip->nexthdr != IPPROTO_ICMPV6)
			return 1;
		return (void *)(icmp + 1) <= end && icmp->type >= ICMP6_FIRST_INFORMATIONAL;
	}
	const struct iphdr *ip = packet;
	const struct icmp *icmp = (const void *)(ip + 1);

	if ((void *)(ip + 1) > end || !(ip->frag_off & IPV4_DONT_FRAGMENT) ||
	    ip->frag_off & bpf_htons(0x1fff))
		return 0;
	if (ip->protocol != IPPROTO_ICMP)
		return 1;
	return (void *)(icmp + 1) <= end &&
	       (icmp->type == ICMP_ECHO || icmp->type == ICMP_ECHO_REPLY);
}

static __always_inline __u16 folded(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Writes the ICMPv4 headers before the quote. Returns 0, or -1 if the frame is too short. */
static __always_inline int tell4(void *packet, const void *end, __u32 mtu)
{
	struct iphdr *ip = packet;
	struct icmp *icmp = (void *)(ip + 1);
	struct iphdr *about = (void *)(icmp + 1);

	if ((void *)(about + 1) > end)
		return -1;
	ip->version = 4;
	ip->ihl = 5;
	ip->tos = 0xc0; /* internetwork control (RFC 1812 section 4.3.2.5) */
	ip->tot_len = bpf_htons(sizeof(*ip) + sizeof(*icmp) + QUOTE);
	ip->id = 0;
	ip->frag_off = 0;
	ip->ttl = 64;
	ip->protocol = IPPROTO_ICMP;
	ip->check = 0;
	ip->saddr = DUMMY_ADDRESS;
	ip->daddr = about->saddr;
	ip->check = folded(bpf_csum_diff(0, 0, (void *)ip, sizeof(*ip), 0));
	icmp->type = ICMP_UNREACHABLE;
	icmp->code = ICMP_FRAGMENTATION_NEEDED;
	icmp->checksum = 0;
	icmp->rest = bpf_htonl(mtu);
	return 0;
}

/* Writes the ICMPv6 headers before the quote. `*pseudo` receives the checksum of the pseudo-header.
 * Returns 0, or -1 if the frame is too short. */
static __always_inline int tell6(void *packet, const void *end, const struct too_big *what,
				 __u64 *pseudo)
{
	struct ipv6hdr *ip = packet;
	struct icmp *icmp = (void *)(ip + 1);
	struct ipv6hdr *about = (void *)(icmp + 1);
	__u32 length = sizeof(*icmp) + QUOTE;

	if ((void *)(about + 1) > end)
		return -1;
	*(__be32 *)ip = bpf_htonl(0x60000000);
	ip->payload_len = bpf_htons(length);
	ip->nexthdr = IPPROTO_ICMPV6;
	ip->hop_limit = 64;
	((__u64 *)&ip->saddr)[0] = what->source[0];
	((__u64 *)&ip->saddr)[1] = what->source[1];
	((__u64 *)&ip->daddr)[0] = high(&about->saddr);
	((__u64 *)&ip->daddr)[1] = low(&about->saddr);
	icmp->type = ICMP6_TOO_BIG;
	icmp->code = 0;
	icmp->checksum = 0;
	icmp->rest = bpf_htonl(what->mtu);
	/* The pseudo-header (RFC 8200 section 8.1): addresses, length, next header. */
	*pseudo = (__u64)(__u32)bpf_csum_diff(0, 0, (void *)&ip->saddr, 32, 0) +
		  bpf_htonl(length) + bpf_htonl(IPPROTO_ICMPV6);
	return 0;
}

/*
 * Turns the frame into an ICMP error to its sender. Returns 1 on success; 0 if no error may be
 * sent, with the frame unchanged; -1 if the frame is corrupted.
 */
static __noinline int send_too_big(struct xdp_md *ctx, const struct too_big *what)
{
	__u32 headers = (what->ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr)) + 8;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 l3 = what->l3;
	struct link link;
	__u64 sum = 0;

	if ((what->ipv6 && what->mtu < SMALLEST_MTU) || what->length < QUOTE ||
	    l3 > ETH_HLEN + 8 || data + ETH_HLEN + 8 > end ||
	    !may_send_error(data + l3, end, what->ipv6) || !within_rate())
		return 0;
	/* The source MAC address is a group address. */
	if (*(__u8 *)(data + ETH_ALEN) & 1)
		return 0;
	link.stations = high(data);
	link.stations_end = load32(data + 8);
	link.tags = *(const __u64 *)(data + 2 * ETH_ALEN);
	/* The quote must be in the frame's linear part. */
	if (data + l3 + QUOTE > end)
		return 0;
	link.type = load16(data + l3 - 2);
	__u32 whole = bpf_xdp_get_buff_len(ctx);

	if (bpf_xdp_adjust_tail(ctx, (int)(l3 + QUOTE) - (int)whole))
		return 0;
	if (bpf_xdp_adjust_head(ctx, -(int)headers))
		return -1;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + ETH_HLEN + 8 > end || data + l3 > end)
		return -1;
	/* Swap the MAC addresses. */
	__builtin_memcpy(data, (const void *)&link.stations + 6, 2);
	__builtin_memcpy(data + 2, &link.stations_end, 4);
	__builtin_memcpy(data + 6, &link.stations, 6);
	*(__u64 *)(data + 2 * ETH_ALEN) = link.tags;
	store16(data + l3 - 2, link.type);
	void *packet = data + l3;

	if (what->ipv6 ? tell6(packet, end, what, &sum) : tell4(packet, end, what->mtu))
		return -1;
	/* The ICMP checksum covers the header of 8 bytes and the quote. */
	void *message = packet + headers - 8;

	if (message + 8 + QUOTE > end)
		return -1;
	/* Not passed as the helper's seed, which has 32 bits: older kernels return an unfolded
	 * sum. */
	sum += (__u32)bpf_csum_diff(0, 0, message + 8, QUOTE, 0);
	sum += (__u64)load32(message) + load32(message + 4);
	store16(message + 2, folded(sum));
	return 1;
}

#endif
