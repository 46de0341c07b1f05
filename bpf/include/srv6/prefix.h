/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Longest-prefix match by one exact lookup for each prefix length of a table, longest first.
 *
 * search_sid() returns a record number, search_policy4() and search_policy6() a policy number; 0
 * for no match. Addresses are in wire byte order.
 *
 * With a million prefixes, the kernel's trie takes 125 ns if it is in the cache and 900 ns if not,
 * whatever the prefixes are; the kernel's hash table takes 15 ns. A lookup here takes 5 ns and two
 * cache lines. Tables have few lengths here: a tenant's hosts, its subnets, a default route. The
 * first length is tried inline, the others in bpf_loop(): inline they would exceed the verifier's
 * limits.
 */
#ifndef KAIDO_SRV6_PREFIX_H
#define KAIDO_SRV6_PREFIX_H

#include "frame.h"

/* Mask of the first `length` bits of a 64-bit word in wire byte order. */
static __always_inline __u64 first_bits(__u32 length)
{
	if (length >= 64)
		return ~0ull;
	return length ? bpf_cpu_to_be64(~0ull << (64 - length)) : 0;
}

/* Hashes three words. Every bit of the result depends on all input bits. User space has the same
 * function (crates/bpf/src/index.rs). */
static __always_inline __u64 mix(__u64 a, __u64 b, __u64 c)
{
	__u64 mixed = a * 0x9e3779b97f4a7c15ull ^ b * 0xc2b2ae3d27d4eb4full ^
		      c * 0x165667b19e3779f9ull;

	return (mixed ^ mixed >> 32) * 0xff51afd7ed558ccdull;
}

/* The possible locations of a key's record: two buckets, and its tag in them. */
struct places {
	__u32 first;
	__u32 second;
	__u16 tag;
};

static __always_inline struct places places_of(__u64 hash, __u32 mask)
{
	return (struct places){
		.first = hash >> 40 & mask,
		.second = hash >> 8 & mask,
		.tag = (__u16)(hash >> 24) | 1,
	};
}

/* True if the bucket may contain the tag. Compares four tags at a time. Most misses end here. */
static __always_inline int may_have(const struct bucket *bucket, __u16 tag)
{
	const __u64 *tags = (const __u64 *)bucket->tag;
	__u64 ones = 0x0001000100010001ull, tops = 0x8000800080008000ull;
	__u64 first = tags[0] ^ tag * ones, second = tags[1] ^ tag * ones;

	return (((first - ones) & ~first) | ((second - ones) & ~second)) & tops ? 1 : 0;
}

/* State of the loops: the key, and the result. */
struct search {
	__u32 active; /* the active copy of the prefix lengths */
	__u64 high;
	__u64 low;
	__u32 mask;   /* bucket mask of the index */
	__u32 tenant;
	__u32 record; /* 0 for none; no record has this number */
};

static __always_inline const struct sid *sid_in(__u32 at, __u16 tag, __u64 high, __u64 low,
						__u32 length, __u32 *record)
{
	const struct bucket *bucket = bpf_map_lookup_elem(&sid_index, &at);

	if (!bucket || !may_have(bucket, tag))
		return 0;
	for (int i = 0; i < INDEX_ENTRIES; i++) {
		if (bucket->tag[i] != tag)
			continue;
		*record = bucket->record[i];
		const struct sid *sid = bpf_map_lookup_elem(&sids, record);

		if (sid && sid->address[0] == high && sid->address[1] == low &&
		    sid->length == length)
			return sid;
	}
	return 0;
}

static __always_inline const struct sid *try_sid(__u64 high, __u64 low, __u32 length, __u32 mask,
						 __u32 *record)
{
	if (length < 128) {
		high &= first_bits(length);
		low &= length > 64 ? first_bits(length - 64) : 0;
	}
	struct places at = places_of(mix(high, low, length), mask);
	const struct sid *sid = sid_in(at.first, at.tag, high, low, length, record);

	return sid ? sid : sid_in(at.second, at.tag, high, low, length, record);
}

static long next_sid_length(__u32 i, struct search *search)
{
	__u32 zero = 0, record;
	const struct control *state = bpf_map_lookup_elem(&control, &zero);

	if (!state || i + 1 >= LENGTHS6)
		return 1;
	__u32 length = state->sids[search->active & 1].length[i + 1];

	if (!try_sid(search->high, search->low, length, search->mask, &record))
		return 0;
	search->record = record;
	return 1;
}

/* Returns the record number of the SID that matches an address; 0 for none. */
__noinline __u32 search_sid(__u64 high, __u64 low)
{
	__u32 zero = 0, record = 0;
	const struct control *state = bpf_map_lookup_elem(&control, &zero);

	if (!state)
		return 0;
	__u32 active = state->active & 1, mask = state->sid_buckets;
	__u32 count = state->sids[active].count;

	if (!count)
		return 0;
	if (try_sid(high, low, state->sids[active].length[0], mask, &record))
		return record;
	if (count == 1)
		return 0;
	struct search search = {.active = active, .high = high, .low = low, .mask = mask};

	bpf_loop(count - 1, next_sid_length, &search, 0);
	return search.record;
}

static __always_inline __u32 prefix4_in(__u32 at, __u16 tag, __u32 tenant, __be32 address,
					__u32 length)
{
	const struct bucket *bucket = bpf_map_lookup_elem(&prefix4_index, &at);

	if (!bucket || !may_have(bucket, tag))
		return 0;
	for (int i = 0; i < INDEX_ENTRIES; i++) {
		if (bucket->tag[i] != tag)
			continue;
		__u32 record = bucket->record[i];
		const struct prefix4 *prefix = bpf_map_lookup_elem(&prefixes4, &record);

		if (prefix && prefix->address == address && prefix->tenant == tenant &&
		    prefix->length == length)
			return prefix->policy;
	}
	return 0;
}

static __always_inline __u32 try_prefix4(__u32 tenant, __be32 address, __u32 length, __u32 mask)
{
	__be32 masked = address & (__u32)first_bits(length);
	struct places at = places_of(mix(masked, tenant, length), mask);
	__u32 policy = prefix4_in(at.first, at.tag, tenant, masked, length);

	return policy ? policy : prefix4_in(at.second, at.tag, tenant, masked, length);
}

static long next_length4(__u32 i, struct search *search)
{
	__u32 number = search->tenant;
	const struct tenant *tenant = bpf_map_lookup_elem(&tenants, &number);

	if (!tenant || i + 1 >= LENGTHS4)
		return 1;
	__u32 length = tenant->ipv4[search->active & 1].length[i + 1];

	search->record = try_prefix4(number, search->high, length, search->mask);
	return search->record != 0;
}

/* Returns the number of the policy for an address; 0 for none. */
static __always_inline __u32 search_policy4(const struct control *control, __u32 number,
					  const struct tenant *tenant, __be32 address)
{
	__u32 active = tenant->active & 1, mask = control->prefix4_buckets, policy = 0;
	__u32 count = tenant->ipv4[active].count;

	if (count)
		policy = try_prefix4(number, address, tenant->ipv4[active].length[0], mask);
	if (!policy && count > 1) {
		struct search search = {
			.active = active, .high = address, .mask = mask, .tenant = number};

		bpf_loop(count - 1, next_length4, &search, 0);
		policy = search.record;
	}
	return policy;
}

static __always_inline __u32 prefix6_in(__u32 at, __u16 tag, __u32 tenant, __u64 high, __u64 low,
					__u32 length)
{
	const struct bucket *bucket = bpf_map_lookup_elem(&prefix6_index, &at);

	if (!bucket || !may_have(bucket, tag))
		return 0;
	for (int i = 0; i < INDEX_ENTRIES; i++) {
		if (bucket->tag[i] != tag)
			continue;
		__u32 record = bucket->record[i];
		const struct prefix6 *prefix = bpf_map_lookup_elem(&prefixes6, &record);

		if (prefix && prefix->address[0] == high && prefix->address[1] == low &&
		    prefix->tenant == tenant && prefix->length == length)
			return prefix->policy;
	}
	return 0;
}

static __always_inline __u32 try_prefix6(__u32 tenant, __u64 high, __u64 low, __u32 length,
					 __u32 mask)
{
	__u64 first = high & first_bits(length);
	__u64 second = length > 64 ? low & first_bits(length - 64) : 0;
	struct places at =
		places_of(mix(first, second, (__u64)tenant << 32 | length), mask);
	__u32 policy = prefix6_in(at.first, at.tag, tenant, first, second, length);

	return policy ? policy : prefix6_in(at.second, at.tag, tenant, first, second, length);
}

static long next_length6(__u32 i, struct search *search)
{
	__u32 number = search->tenant;
	const struct tenant *tenant = bpf_map_lookup_elem(&tenants, &number);

	if (!tenant || i + 1 >= LENGTHS6)
		return 1;
	__u32 length = tenant->ipv6[search->active & 1].length[i + 1];

	search->record = try_prefix6(number, search->high, search->low, length, search->mask);
	return search->record != 0;
}

/* Returns the number of the policy for an address; 0 for none. */
static __always_inline __u32 search_policy6(const struct control *control, __u32 number,
					  const struct tenant *tenant, __u64 high, __u64 low)
{
	__u32 active = tenant->active & 1, mask = control->prefix6_buckets, policy = 0;
	__u32 count = tenant->ipv6[active].count;

	if (count)
		policy = try_prefix6(number, high, low, tenant->ipv6[active].length[0], mask);
	if (!policy && count > 1) {
		struct search search = {.active = active,
					.high = high,
					.low = low,
					.mask = mask,
					.tenant = number};

		bpf_loop(count - 1, next_length6, &search, 0);
		policy = search.record;
	}
	return policy;
}

#endif
