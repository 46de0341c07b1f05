/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * End.AN.NF, second half: marks packets that arrive on `function_in`, and restores the outer header
 * of packets that leave by `function_out`.
 *
 * Functions return a TC action unless stated otherwise. A packet without a valid slot is dropped.
 */
#ifndef KAIDO_SRV6_NETFILTER_H
#define KAIDO_SRV6_NETFILTER_H

#include "route.h"
#include "slot.h"

#include <linux/pkt_cls.h>

/* BPF_SKB_TSTAMP_DELIVERY_MONO since Linux 5.18. Linux 6.11 renamed the constant. */
#define TIME_OF_DELIVERY 1

static __always_inline void count_packet(const struct control *state, __u32 counter, __u32 length)
{
	__u32 at = bpf_get_smp_processor_id() * state->counters + counter;
	struct count *count = bpf_map_lookup_elem(&counts, &at);

	/* The slot of an earlier program has a counter of that program, which may belong to another
	 * SID now. A few packets are then counted for the wrong SID. */
	if (count && counter < state->counters) {
		count->packets++;
		count->bytes += length;
	}
}

static __always_inline int shoot(const struct control *state, struct __sk_buff *skb,
				 enum reason reason)
{
	/* Counted here. The timestamp is cleared so that it is not counted as a drop by the kernel
	 * too. */
	skb->tstamp = 0;
	/* A packet of a tunnel may be shorter than an Ethernet header. */
	count_packet(state, REASONS + reason, skb->len > ETH_HLEN ? skb->len - ETH_HLEN : 0);
	return TC_ACT_SHOT;
}

static __always_inline int into_netfilter(struct __sk_buff *skb)
{
	void *ethernet = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 zero = 0;
	const struct control *state = bpf_map_lookup_elem(&control, &zero);

	if (!state || ethernet + ETH_HLEN > end)
		return TC_ACT_SHOT;
	__u64 tag = tag_at(ethernet + ETH_ALEN);
	const struct slot *slot = slot_of(state, tag);

	if (!slot || !is_slot_of(slot, tag))
		return shoot(state, skb, REASON_STATE_LOST);
	__u32 mark = slot->mark;

	/* The original source MAC address, for rules and logs. */
	copy_station(ethernet + ETH_ALEN, slot->station);
	skb->mark = mark;
	if (bpf_skb_set_tstamp(skb, (__u64)state->magic << 48 | tag, TIME_OF_DELIVERY))
		return shoot(state, skb, REASON_STATE_LOST);
	return TC_ACT_UNSPEC;
}

/* Compensates the kernel's decrement if the hop limit could not be raised beforehand. */
static __always_inline int give_hop_limit_back(struct __sk_buff *skb, int ipv6)
{
	void *packet = (void *)(long)skb->data + ETH_HLEN, *end = (void *)(long)skb->data_end;

	if (ipv6) {
		struct ipv6hdr *ip = packet;

		if ((void *)(ip + 1) > end)
			return -1;
		/* Rules may have set it to the maximum. */
		if (ip->hop_limit < 255)
			ip->hop_limit++;
		return 0;
	}
	struct iphdr *ip = packet;

	if ((void *)(ip + 1) > end)
		return -1;
	if (ip->ttl < 255)
		raise_ttl(ip);
	return 0;
}

/* Looks up the next segment and sends the packet: the routes have changed since the first half, or
 * the neighbor was unresolved. The outer header `ip` is already in place. `port`: the ingress
 * port. */
static __always_inline int send_anew(struct __sk_buff *skb, const struct control *state,
				     const struct ipv6hdr *ip, __u32 port)
{
	struct bpf_fib_lookup fib = {
		.family = AF_INET6,
		.ifindex = port,
		.flowinfo = *(const __be32 *)ip & FLOW_MASK,
		.l4_protocol = ip->nexthdr,
		.tot_len = skb->len - ETH_HLEN,
	};
	struct bpf_redir_neigh next = {.nh_family = AF_INET6};

	__builtin_memcpy(fib.ipv6_src, &ip->saddr, 16);
	__builtin_memcpy(fib.ipv6_dst, &ip->daddr, 16);
	long answer = bpf_fib_lookup(skb, &fib, sizeof(fib), 0);

	if (answer == BPF_FIB_LKUP_RET_NO_NEIGH) {
		__builtin_memcpy(next.ipv6_nh, fib.ipv6_dst, 16);
		return bpf_redirect_neigh(fib.ifindex, &next, sizeof(next), 0);
	}
	if (answer != BPF_FIB_LKUP_RET_SUCCESS)
		return shoot(state, skb,
			     answer == BPF_FIB_LKUP_RET_FRAG_NEEDED ? REASON_TOO_BIG :
								      REASON_NO_ROUTE);
	if (bpf_skb_store_bytes(skb, 0, fib.dmac, ETH_ALEN, 0) ||
	    bpf_skb_store_bytes(skb, ETH_ALEN, fib.smac, ETH_ALEN, 0))
		return shoot(state, skb, REASON_TRUNCATED);
	return bpf_redirect(fib.ifindex, 0);
}

static __always_inline int out_of_netfilter(struct __sk_buff *skb, const struct control *state)
{
	__u64 time = skb->tstamp, tag = time & ((1ull << 48) - 1);

	const struct slot *slot = slot_of(state, tag);

	if (time >> 48 != state->magic || !slot)
		return shoot(state, skb, REASON_STATE_LOST);
	__u64 word = first_word_of(slot);
	__u32 flags = word >> SLOT_FLAGS_AT, length = (__u8)(word >> SLOT_LENGTH_AT);
	__u32 inner = skb->len - ETH_HLEN;
	int ipv6 = flags & SLOT_IPV6;

	if ((word ^ time) << (64 - SLOT_LENGTH_AT) || length < OUTER_LEAST || length > LIMIT_OUTER ||
	    skb->protocol != (ipv6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP)))
		return shoot(state, skb, REASON_STATE_LOST);
	if (!(flags & SLOT_RAISED) && give_hop_limit_back(skb, ipv6))
		return shoot(state, skb, REASON_TRUNCATED);
	if (bpf_skb_adjust_room(skb, length, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_ENCAP_L3_IPV6))
		return shoot(state, skb, REASON_NO_HEADROOM);
	void *ethernet = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ipv6hdr *ip = ethernet + ETH_HLEN;

	/* The kernel has made room at the front for the outer header. */
	if (copy_held(ip, slot->header, ip, end, length))
		return shoot(state, skb, REASON_TRUNCATED);
	store64(ethernet, load64(slot->ethernet));
	store32(ethernet + 8, load32(slot->ethernet + 8));
	store16(ethernet + 12, bpf_htons(ETH_P_IPV6));
	ip->payload_len = bpf_htons(inner + length - sizeof(*ip));
	__u32 counter = slot->counter, generation = slot->generation;
	__u32 ifindex = slot->ifindex, port = slot->port;

	/* A later packet may have reused the slot during the copy. */
	barrier(); /* for the compiler: x86 keeps loads in order */
	if (first_word_of(slot) != word)
		return shoot(state, skb, REASON_STATE_LOST);
	/* Otherwise a qdisc that schedules by timestamp would delay the packet. */
	skb->tstamp = 0;
	/* The mark belonged to the inner packet. */
	skb->mark = 0;
	if (flags & SLOT_AGAIN) {
		count_packet(state, counter, inner);
		return TC_ACT_OK;
	}
	int verdict = generation == state->generation ? bpf_redirect(ifindex, 0) :
							send_anew(skb, state, ip, port);

	if (verdict == TC_ACT_REDIRECT)
		count_packet(state, counter, inner);
	return verdict;
}

#endif
