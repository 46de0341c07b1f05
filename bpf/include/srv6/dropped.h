/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Counts the packets of service functions that the kernel drops, by netfilter hook.
 *
 * The kernel reports every packet that it drops; packets of a function are recognized by their tag.
 * Packets that are not dropped incur no cost.
 */
#ifndef KAIDO_SRV6_DROPPED_H
#define KAIDO_SRV6_DROPPED_H

#include "slot.h"
#include "sk_buff.h"

struct net_device {
	int ifindex;
} __attribute__((preserve_access_index));

struct dst_entry {
	short error;
} __attribute__((preserve_access_index));

enum skb_drop_reason {
	SKB_DROP_REASON_NOT_SPECIFIED,
	SKB_DROP_REASON_NETFILTER_DROP,
};

/* Returns the hook at which the packet was dropped. A packet has a route after prerouting, and its
 * egress device after forward. A packet dropped by a consumer of NFQUEUE has no drop reason and
 * counts for the hook where it was queued. */
static __always_inline enum hook hook_of(const struct sk_buff *skb, const struct control *state,
					 int reason)
{
	if (reason != (int)bpf_core_enum_value(enum skb_drop_reason,
					       SKB_DROP_REASON_NETFILTER_DROP) &&
	    reason != (int)bpf_core_enum_value(enum skb_drop_reason,
					       SKB_DROP_REASON_NOT_SPECIFIED))
		return NO_HOOK;
	const struct dst_entry *route = (const void *)(skb->_skb_refdst & ~1ul);

	if (!route)
		return HOOK_PREROUTING;
	/* An unreachable route gives no drop reason either. */
	if (BPF_CORE_READ(route, error))
		return NO_HOOK;
	const struct net_device *device = skb->dev;

	return device && device->ifindex == (int)state->function_out ? HOOK_POSTROUTING :
								       HOOK_FORWARD;
}

static __always_inline void count_drop(const struct sk_buff *skb, int reason)
{
	__u32 zero = 0;
	__u64 time = skb->tstamp, tag = time & ((1ull << 48) - 1);
	const struct control *state = bpf_map_lookup_elem(&control, &zero);

	if (!state || time >> 48 != state->magic)
		return;
	const struct slot *slot = slot_of(state, tag);

	if (!slot || !is_slot_of(slot, tag))
		return;
	__u32 counter = slot->counter;
	struct drops *drops = bpf_map_lookup_elem(&function_drops, &counter);

	if (!drops) {
		const struct drops none = {};

		bpf_map_update_elem(&function_drops, &counter, &none, BPF_NOEXIST);
		drops = bpf_map_lookup_elem(&function_drops, &counter);
	}
	if (drops)
		/* Another drop may be in progress on the same CPU. */
		__sync_fetch_and_add(&drops->packets[hook_of(skb, state, reason)], 1);
}

#endif
