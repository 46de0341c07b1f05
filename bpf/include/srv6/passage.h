/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Passages: between which addresses inner packets have lately gone into netfilter.
 *
 * An answer that the kernel makes itself, to a packet that it does not let pass, has nothing of
 * that packet's slot. It has its addresses: an ICMP error quotes them, a reset has them the other
 * way round.
 *
 * No pair is missing that a packet has gone between: it has a place before the packet goes, nobody
 * takes a place that is not old, and a set without one says that it lacks some.
 */
#ifndef KAIDO_SRV6_PASSAGE_H
#define KAIDO_SRV6_PASSAGE_H

#include "maps.h"
#include "prefix.h"

#define PASSAGE_PLACES 4
/* About a second: a shift makes it. */
#define PASSAGE_TICK_BITS 30
/* How long a packet may be with the rules that is answered, in such ticks: longer than any queue
 * holds one, and than the kernel waits for fragments. */
#define PASSAGE_TICKS 120

/* Never so small that a place of zeros looks new. */
static __always_inline __u32 passage_time(void)
{
	return (bpf_ktime_get_coarse_ns() >> PASSAGE_TICK_BITS) + PASSAGE_TICKS;
}

/* The hash of a packet's source and destination. With what nobody outside knows, so that nobody
 * makes another pair's. */
static __always_inline __u64 pair4(const struct control *state, __be32 source, __be32 destination)
{
	return mix(source, destination, state->magic);
}

static __always_inline __u64 pair6(const struct control *state, const __u64 *source,
				   const __u64 *destination)
{
	return mix(mix(source[0], source[1], state->magic), destination[0], destination[1]);
}

static __always_inline __u32 check_of(__u64 pair)
{
	return (__u32)(pair >> 32) | 1;
}

static __always_inline struct passages *passages_of(const struct control *state, __u64 pair)
{
	__u32 at = (__u32)pair & state->passages;

	return bpf_map_lookup_elem(&passages, &at);
}

/* Takes a place, or says that the set has none. The time goes first: nobody takes the place of one
 * that has seen it. */
static __always_inline void take_place(struct passages *set, __u64 key, __u32 now)
{
	for (int i = 0; i < PASSAGE_PLACES; i++) {
		__u64 old = set->key[i];

		if (old && old != key && now - set->time[i] < PASSAGE_TICKS)
			continue;
		*(volatile __u32 *)&set->time[i] = now;
		if (__sync_val_compare_and_swap(&set->key[i], old, key) == old)
			return;
	}
	*(volatile __u32 *)&set->full = now;
}

/* Before a packet goes into netfilter. `way`: the way back of answers; 0 for none. */
static __always_inline int remember_passage(const struct control *state, __u64 pair, __u32 way)
{
	struct passages *set = passages_of(state, pair);
	__u64 key = (__u64)check_of(pair) << 32 | way;
	__u32 now = passage_time();

	if (!set)
		return -1;
	for (int i = 0; i < PASSAGE_PLACES; i++) {
		__u32 age = now - set->time[i];

		/* An older one may be about to become another pair's. */
		if (set->key[i] != key || age >= PASSAGE_TICKS / 2)
			continue;
		/* Not without need: other processors read the line. */
		if (age)
			*(volatile __u32 *)&set->time[i] = now;
		return 0;
	}
	take_place(set, key, now);
	return 0;
}

#define NO_PASSAGE (~0u)

/* The way back of an answer to a packet between these addresses: 0 for none, NO_PASSAGE if no such
 * packet has passed. */
static __always_inline __u32 way_back_of(const struct control *state, __u64 pair)
{
	const struct passages *set = passages_of(state, pair);
	__u32 found = NO_PASSAGE, check = check_of(pair);
	__u32 now = passage_time();

	if (!set)
		return 0;
	for (int i = 0; i < PASSAGE_PLACES; i++) {
		if (set->key[i] >> 32 != check || now - set->time[i] >= PASSAGE_TICKS)
			continue;
		__u32 way = set->key[i];

		/* Of two tenants with the same addresses nobody knows whose it is. */
		if (found != NO_PASSAGE && found != way)
			return 0;
		found = way;
	}
	if (found == NO_PASSAGE && now - set->full < PASSAGE_TICKS)
		return 0;
	return found;
}

#endif
