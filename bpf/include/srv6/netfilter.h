/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * End.AN.NF, the second half: what comes in by `function_in` is given its mark, and what leaves by
 * `function_out` is given its outer header back.
 *
 * A packet without a slot goes nowhere.
 */
#ifndef KAIDO_SRV6_NETFILTER_H
#define KAIDO_SRV6_NETFILTER_H

#include "route.h"
#include "slot.h"

#include <linux/pkt_cls.h>

/* Since Linux 5.18; Linux 6.11 has other names for the same. */
#define TIME_OF_DELIVERY 1

static __always_inline void count_packet(const struct control *state, __u32 counter, __u32 length)
{
	__u32 at = bpf_get_smp_processor_id() * state->counters + counter;
	struct count *count = bpf_map_lookup_elem(&counts, &at);

	/* An earlier program's slot has an earlier program's counter, which may be another's here: a few
	 * packets are then counted for it. */
	if (count && counter < state->counters) {
		count->packets++;
		count->bytes += length;
	}
}

static __always_inline int shoot(const struct control *state, struct __sk_buff *skb,
				 enum reason reason)
{
	/* Counted here, and not as dropped by the kernel. */
	skb->tstamp = 0;
	count_packet(state, REASONS + reason, skb->len - ETH_HLEN);
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

	/* Whom it came from, for rules and logs. */
	copy_station(ethernet + ETH_ALEN, slot->station);
	skb->mark = mark;
	if (bpf_skb_set_tstamp(skb, (__u64)state->magic << 48 | tag, TIME_OF_DELIVERY))
		return shoot(state, skb, REASON_STATE_LOST);
	return TC_ACT_UNSPEC;
}

/* The hop limit of a packet that could not be raised. */
static __always_inline int give_hop_limit_back(struct __sk_buff *skb, int ipv6)
{
	void *packet = (void *)(long)skb->data + ETH_HLEN, *end = (void *)(long)skb->data_end;

	if (ipv6) {
		struct ipv6hdr *ip = packet;

		if ((void *)(ip + 1) > end)
			return -1;
		/* Rules may have made it as large as it can be. */
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

/* Sends to the next segment, which is looked up anew: routes have changed since, or the neighbour
 * was not known. The outer header, `ip`, is in front already. `port`: where the packet came in. */
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

	/* What is new is in front, where the kernel has made room. */
	if (copy_held(ip, slot->header, ip, end, length))
		return shoot(state, skb, REASON_TRUNCATED);
	store64(ethernet, load64(slot->ethernet));
	store32(ethernet + 8, load32(slot->ethernet + 8));
	store16(ethernet + 12, bpf_htons(ETH_P_IPV6));
	ip->payload_len = bpf_htons(inner + length - sizeof(*ip));
	__u32 counter = slot->counter, generation = slot->generation;
	__u32 ifindex = slot->ifindex, port = slot->port;

	/* While it was copied a packet that came later may have taken the slot. */
	barrier(); /* of the compiler: x86 keeps loads in order */
	if (first_word_of(slot) != word)
		return shoot(state, skb, REASON_STATE_LOST);
	/* Or a qdisc that goes by the time would keep the packet back. */
	skb->tstamp = 0;
	/* It was the inner packet's. */
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
