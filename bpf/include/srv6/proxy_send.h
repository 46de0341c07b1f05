/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Sends a packet that returned from a service function, and has its outer header again, to its next
 * segment.
 *
 * Functions return a TC action unless stated otherwise.
 */
#ifndef KAIDO_SRV6_PROXY_SEND_H
#define KAIDO_SRV6_PROXY_SEND_H

#include "netfilter.h"
#include "sk_buff.h"

/* Clears metadata that the function left: hash, mark and priority. bpf_redirect() and
 * bpf_redirect_neigh() clear the timestamp. */
static __always_inline void forget_function(struct __sk_buff *skb)
{
	bpf_set_hash_invalid(skb);
	skb->mark = 0;
	skb->priority = 0;
}

/* True if the checksum is left to the device that sends the packet. The context of a tc program is the
 * kernel's sk_buff. */
static __always_inline int is_sum_partial(struct __sk_buff *ctx)
{
	const struct sk_buff *skb = (const void *)ctx;

	return BPF_CORE_READ_BITFIELD_PROBED(skb, ip_summed) == CHECKSUM_PARTIAL;
}

/* True if the device that sends the packet would sum from a place before byte `at`, and could write the
 * result there: into an outer header. The sender chooses that place (PACKET_VNET_HDR of packet(7)). Data
 * starts at the Ethernet header. */
static __always_inline int is_sum_before(struct __sk_buff *ctx, __u32 at)
{
	const struct sk_buff *skb = (const void *)ctx;
	__u32 front = BPF_CORE_READ(skb, data) - BPF_CORE_READ(skb, head);

	return is_sum_partial(ctx) && BPF_CORE_READ(skb, csum_start) < front + at;
}

/* True if segmentation would leave little payload beside an outer header of `length` bytes, by which
 * bpf_skb_adjust_room() lowers the segment size: the function could multiply its packets. */
static __always_inline int is_finely_segmented(const struct __sk_buff *skb, __u32 length)
{
	return skb->gso_size && skb->gso_size < 2 * length;
}

/* True if the packet, or one of its segments, is larger than the MTU of an interface. A lookup with
 * `tot_len` 0, and bpf_check_mtu() without the flag, accept segments of any size. */
static __always_inline int exceeds(struct __sk_buff *skb, __u32 ifindex)
{
	__u32 mtu = 0;

	return bpf_check_mtu(skb, ifindex, &mtu, 0, skb->gso_size ? BPF_MTU_CHK_SEGS : 0) != 0;
}

/* Handles a next segment that is local or has no route: function_again() decides, as for a packet
 * received on `port`. */
static __always_inline int send_again(struct __sk_buff *skb, const struct control *state,
				      __u32 port)
{
	__u8 link[2 * ETH_ALEN] = {};

	*(__u32 *)link = AGAIN_MAC_HIGH;
	store16(link + 4, AGAIN_MAC_LOW);
	store16(link + ETH_ALEN, port);
	store16(link + ETH_ALEN + 2, port >> 16);
	if (bpf_skb_store_bytes(skb, 0, link, sizeof(link), 0))
		return shoot(state, skb, REASON_TRUNCATED);
	return bpf_redirect(state->proxy_out, 0);
}

/* Sends as the kernel's tables select. `device`: ingress interface for the route lookup. `port`:
 * ingress port if the next segment is a local SID. */
static __always_inline int send_by_route(struct __sk_buff *skb, const struct control *state,
					 __u32 device, __u32 port)
{
	const struct ipv6hdr *ip = (void *)(long)skb->data + ETH_HLEN;
	struct bpf_fib_lookup fib = {
		.family = AF_INET6,
		.ifindex = device,
		.tot_len = skb->gso_segs > 1 ? 0 : skb->len - ETH_HLEN,
	};
	struct bpf_redir_neigh next = {.nh_family = AF_INET6};

	if ((void *)(ip + 1) > (void *)(long)skb->data_end)
		return shoot(state, skb, REASON_TRUNCATED);
	fib.flowinfo = *(const __be32 *)ip & FLOW_MASK;
	fib.l4_protocol = ip->nexthdr;
	__builtin_memcpy(fib.ipv6_src, &ip->saddr, 16);
	__builtin_memcpy(fib.ipv6_dst, &ip->daddr, 16);
	long answer = bpf_fib_lookup(skb, &fib, sizeof(fib), 0);

	if (answer == BPF_FIB_LKUP_RET_FRAG_NEEDED)
		return shoot(state, skb, REASON_TOO_BIG);
	if (answer != BPF_FIB_LKUP_RET_SUCCESS && answer != BPF_FIB_LKUP_RET_NO_NEIGH)
		return send_again(skb, state, port);
	if (exceeds(skb, fib.ifindex))
		return shoot(state, skb, REASON_TOO_BIG);
	if (answer == BPF_FIB_LKUP_RET_NO_NEIGH) {
		__builtin_memcpy(next.ipv6_nh, fib.ipv6_dst, 16);
		return bpf_redirect_neigh(fib.ifindex, &next, sizeof(next), 0);
	}
	if (bpf_skb_store_bytes(skb, 0, fib.dmac, ETH_ALEN, 0) ||
	    bpf_skb_store_bytes(skb, ETH_ALEN, fib.smac, ETH_ALEN, 0))
		return shoot(state, skb, REASON_TRUNCATED);
	return bpf_redirect(fib.ifindex, 0);
}

#endif
