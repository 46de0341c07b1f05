/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Per-CPU caches of SIDs and of tenants' policies, indexed by address.
 *
 * find_sid() returns a cached SID or null, find_policy() a policy number or 0. Addresses are in
 * wire byte order.
 *
 * With a million entries, a search touches index buckets and a record, each in a page that misses
 * the TLB: 370 of the 470 ns that End takes. The cache holds ten thousand active addresses in a few
 * hundred pages.
 *
 * Every address has two slots (Pagh and Rodler, Cuckoo Hashing, 2004). An evicted address is
 * searched again and evicts another one, chosen at random. With fewer addresses than half the
 * number of slots, each address soon has a slot of its own.
 */
#ifndef KAIDO_SRV6_FOUND_H
#define KAIDO_SRV6_FOUND_H

#include "prefix.h"
#include "sid.h"

/* Nonzero to count packets to a SID in its cache slot. */
const volatile __u8 counts_found = 1;

/* Not the index of an entry: a lookup of it returns null. */
#define NOT_FOUND (~0u)

/* Index of a slot in a CPU's row, from the high bits of `hash`. */
static __always_inline __u32 slot_index(__u32 row, __u64 hash)
{
	return row << LIMIT_FOUND_BITS | hash >> (64 - LIMIT_FOUND_BITS);
}

/* A second hash of the same address. User space has the same function (crates/bpf/src/found.rs). */
static __always_inline __u64 second_hash(__u64 hash)
{
	return (hash ^ hash >> 32) * 0x9e3779b97f4a7c15ull;
}

/* Selects the slot for a new entry: one that has no entry of this version, otherwise a random
 * one. */
static __always_inline __u32 choose_slot(__u32 first, __u32 second, int first_is_old,
				       int second_is_old)
{
	if (first_is_old)
		return first;
	return second_is_old || bpf_get_prandom_u32() & 1 ? second : first;
}

/* Flushes a slot's packet count into its SID's counter before the slot is reused. If the SID has
 * been deleted, the count is discarded: its counter may already belong to a different SID. */
static __always_inline void flush_count(const struct found_sid *place, __u32 row,
				   const struct control *state)
{
	if (!place->count.packets)
		return;
	if (place->sid.version != state->version) {
		__u32 record = search_sid(place->sid.address[0], place->sid.address[1]);
		const struct sid *sid = bpf_map_lookup_elem(&sids, &record);

		if (!record || !sid || sid->counter != place->sid.counter ||
		    (__s32)(place->sid.version - sid->version) < 0)
			return;
	}
	__u32 at = row * state->counters + place->sid.counter;
	struct count *count = bpf_map_lookup_elem(&counts, &at);

	if (count && count->packets < place->count.packets)
		*count = place->count;
}

/* Caches the SID that matches an address, which is in neither of its two slots. Returns the index
 * of the slot, or NOT_FOUND if no SID matches. */
__noinline __u32 cache_sid(__u64 high, __u64 low, __u32 first, __u32 second, __u32 row)
{
	__u32 zero = 0, record;
	const struct control *state = bpf_map_lookup_elem(&control, &zero);
	const struct found_sid *in_first = bpf_map_lookup_elem(&found_sids, &first);
	const struct found_sid *in_second = bpf_map_lookup_elem(&found_sids, &second);

	if (!state || !in_first || !in_second)
		return NOT_FOUND;
	/* Read before the search, so that a change during the search invalidates the entry. */
	__u32 version = *(const volatile __u32 *)&state->version;

	record = search_sid(high, low);
	const struct sid *sid = bpf_map_lookup_elem(&sids, &record);

	if (!record || !sid)
		return NOT_FOUND;
	/* An older entry of the same address is replaced, since there must not be a second
	 * count. */
	__u32 slot = first;

	if (in_second->sid.address[0] == high && in_second->sid.address[1] == low)
		slot = second;
	else if (in_first->sid.address[0] != high || in_first->sid.address[1] != low)
		slot = choose_slot(first, second, in_first->sid.version != version,
				   in_second->sid.version != version);
	struct found_sid *place = bpf_map_lookup_elem(&found_sids, &slot);

	if (!place)
		return NOT_FOUND;
	flush_count(place, row, state);
	__u32 at = row * state->counters + sid->counter;
	const struct count *count = bpf_map_lookup_elem(&counts, &at);

	if (!count)
		return NOT_FOUND;
	/* User space reads the counts. Invalidate the entry while they belong to another SID. */
	*(volatile __u32 *)&place->sid.version = 0;
	barrier(); /* for the compiler: x86 keeps stores in order; other CPUs count slightly late */
	place->count = (struct count){};
	if (sid->length == 128)
		place->count = *count;
	place->sid.address[0] = high;
	place->sid.address[1] = low;
	place->sid.params.words[0] = sid->params.words[0];
	place->sid.params.words[1] = sid->params.words[1];
	__builtin_memcpy(&place->sid.counter, &sid->counter,
			 sizeof(*sid) - offsetof(struct sid, counter));
	barrier();
	*(volatile __u32 *)&place->sid.version = version;
	return slot;
}

static __always_inline int is_sid_of(const struct found_sid *found, __u64 high, __u64 low,
				     __u32 version)
{
	return !((found->sid.address[0] ^ high) | (found->sid.address[1] ^ low) |
		 (found->sid.version ^ version));
}

/* Returns the SID that matches an address, or null. It is a copy that belongs to this CPU and
 * remains valid until the program returns. */
static __always_inline const struct sid *find_sid(const struct frame *frame, __u64 high, __u64 low)
{
	__u64 hash = mix(high, low, 0);
	__u32 version = frame->control->version, first = slot_index(frame->row, hash), second;

	const struct found_sid *found = bpf_map_lookup_elem(&found_sids, &first);

	if (!found)
		return 0;
	if (is_sid_of(found, high, low, version))
		return &found->sid;
	if (!frame->control->sids[frame->control->active & 1].count)
		return 0;
	second = slot_index(frame->row, second_hash(hash));
	found = bpf_map_lookup_elem(&found_sids, &second);
	if (!found)
		return 0;
	if (is_sid_of(found, high, low, version))
		return &found->sid;
	first = cache_sid(high, low, first, second, frame->row);
	found = bpf_map_lookup_elem(&found_sids, &first);
	return found ? &found->sid : 0;
}

/* Counts a packet to a SID that find_sid() returned. */
static __always_inline void count_sid(const struct frame *frame, const struct sid *sid)
{
	struct found_sid *found = container_of(sid, struct found_sid, sid);

	if (counts_found && sid->length == 128) {
		found->count.packets++;
		found->count.bytes += frame->length;
	} else {
		add_to(frame, sid->counter);
	}
}

/* Caches a tenant's policy for an address. Returns as cache_sid() does. */
__noinline __u32 cache_policy(__u64 high, __u64 low, __u32 owner, __u32 first, __u32 second)
{
	__u32 zero = 0, number = owner & ~OWNER_IPV6;
	const struct control *state = bpf_map_lookup_elem(&control, &zero);
	const struct tenant *tenant = bpf_map_lookup_elem(&tenants, &number);
	const struct found_policy *in_first = bpf_map_lookup_elem(&found_policies, &first);
	const struct found_policy *in_second = bpf_map_lookup_elem(&found_policies, &second);

	if (!state || !tenant || !in_first || !in_second)
		return NOT_FOUND;
	/* Read before the search, so that a change during the search invalidates the entry. */
	__u32 version = *(const volatile __u32 *)&state->version;
	__u32 policy = owner & OWNER_IPV6 ? search_policy6(state, number, tenant, high, low) :
					    search_policy4(state, number, tenant, high);

	if (!policy)
		return NOT_FOUND;
	__u32 slot = choose_slot(first, second, in_first->version != version,
				 in_second->version != version);
	struct found_policy *place = bpf_map_lookup_elem(&found_policies, &slot);

	if (!place)
		return NOT_FOUND;
	place->address[0] = high;
	place->address[1] = low;
	place->owner = owner;
	place->version = version;
	place->policy = policy;
	return slot;
}

static __always_inline int is_policy_of(const struct found_policy *found, __u64 high, __u64 low,
					__u32 owner, __u32 version)
{
	return !((found->address[0] ^ high) | (found->address[1] ^ low) | (found->owner ^ owner) |
		 (found->version ^ version));
}

/* Returns the number of a tenant's policy for an address; 0 for none. For IPv6, `owner` is the
 * tenant plus OWNER_IPV6. For IPv4, `high` is the address and `low` is zero. */
static __always_inline __u32 find_policy(const struct frame *frame, __u32 owner, __u64 high,
					 __u64 low)
{
	__u64 hash = mix(high, low, owner);
	__u32 version = frame->control->version, first = slot_index(frame->row, hash), second;
	const struct found_policy *found = bpf_map_lookup_elem(&found_policies, &first);

	if (!found)
		return 0;
	if (is_policy_of(found, high, low, owner, version))
		return found->policy;
	second = slot_index(frame->row, second_hash(hash));
	found = bpf_map_lookup_elem(&found_policies, &second);
	if (!found)
		return 0;
	if (is_policy_of(found, high, low, owner, version))
		return found->policy;
	first = cache_policy(high, low, owner, first, second);
	found = bpf_map_lookup_elem(&found_policies, &first);
	return found ? found->policy : 0;
}

#endif
