/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Passages: between which addresses inner packets have lately gone into netfilter.
 *
 * An answer that the kernel makes itself, to a packet that it does not let pass, has nothing of
 * that packet's slot. It has its addresses: an ICMP error quotes them, a reset has them the other
 * way round.
 *
 * No pair is missing that a packet has gone between: it has a place before the packet goes, nobody
 * takes a place that is not old, and a set without one says that it lacks some. A place is one word,
 * with its time, so that nobody sees one half of it.
 */
#ifndef KAIDO_SRV6_PASSAGE_H
#define KAIDO_SRV6_PASSAGE_H

#include "maps.h"
#include "prefix.h"

/* About a second: a shift makes it. */
#define PASSAGE_TICK_BITS 30
/* How long a packet may be with the rules that is answered, in such ticks: longer than any queue
 * holds one, and than the kernel waits for fragments. */
#define PASSAGE_TICKS 120

/* A place: the pair's check, the time, and the way back. */
#define CHECK_AT 40
#define TIME_AT 28
#define TIME_MASK 0xfff
#define WAY_MASK ((1u << TIME_AT) - 1)

/* Never so small that a set of zeros looks full. The timer keeps it (`watch.h`): asking the clock for
 * each packet takes 60 instructions. */
static __always_inline __u32 passage_time(const struct control *state)
{
	return *(const volatile __u32 *)&state->passage_time;
}

static __always_inline void set_passage_time(struct control *state)
{
	*(volatile __u32 *)&state->passage_time =
		(bpf_ktime_get_ns() >> PASSAGE_TICK_BITS) + PASSAGE_TICKS;
}

/* Whether a place's time is less than so many ticks ago. Another processor's may be one ahead. */
static __always_inline int is_new(__u64 place, __u32 now, __u32 ticks)
{
	return ((now + 1 - (__u32)(place >> TIME_AT)) & TIME_MASK) < ticks + 1;
}

/* The hash of a packet's source and destination. Who makes another pair's costs that pair its
 * answers, as with its addresses. */
static __always_inline __u64 pair4(__be32 source, __be32 destination)
{
	return mix(source, destination, 0);
}

static __always_inline __u64 pair6(const __u64 *source, const __u64 *destination)
{
	return mix(mix(source[0], source[1], 0), destination[0], destination[1]);
}

/* The pair's place by a way, at the time 0. Not 0 itself. */
static __always_inline __u64 place_of(__u64 pair, __u32 way)
{
	return (pair | 1ull << CHECK_AT) >> CHECK_AT << CHECK_AT | way;
}

static __always_inline __u64 timed(__u64 place, __u32 now)
{
	return place | (__u64)(now & TIME_MASK) << TIME_AT;
}

static __always_inline __u64 untimed(__u64 place)
{
	return place & ~((__u64)TIME_MASK << TIME_AT);
}

static __always_inline struct passages *passages_of(const struct control *state, __u64 pair)
{
	__u32 at = (__u32)pair & state->passages;

	return bpf_map_lookup_elem(&passages, &at);
}

/* Takes a place, or says that the set has none. */
static __always_inline void take_place(struct passages *set, __u64 place, __u32 now)
{
	for (int i = 0; i < PASSAGE_PLACES; i++) {
		__u64 old = *(volatile __u64 *)&set->place[i];

		if (old && untimed(old) != place && is_new(old, now, PASSAGE_TICKS))
			continue;
		if (__sync_val_compare_and_swap(&set->place[i], old, timed(place, now)) == old)
			return;
	}
	*(volatile __u32 *)&set->full = now;
}

/* Before a packet goes into netfilter. `way`: the way back of answers; 0 for none. */
static __always_inline int remember_passage(const struct control *state, __u64 pair, __u32 way)
{
	struct passages *set = passages_of(state, pair);
	__u64 place = place_of(pair, way);
	__u32 now = passage_time(state);

	if (!set)
		return -1;
	/* Not written without need: other processors read the line. */
	for (int i = 0; i < PASSAGE_PLACES; i++)
		if (*(volatile __u64 *)&set->place[i] == timed(place, now))
			return 0;
	take_place(set, place, now);
	return 0;
}

#define NO_PASSAGE (~0u)

/* The way back of an answer to a packet between these addresses: 0 for none, NO_PASSAGE if no such
 * packet has passed. */
static __always_inline __u32 way_back_of(const struct control *state, __u64 pair)
{
	const struct passages *set = passages_of(state, pair);
	__u32 found = NO_PASSAGE, now = passage_time(state);

	/* Where some found no place any pair may be one of them, by any way. */
	if (!set || now + 1 - *(const volatile __u32 *)&set->full < PASSAGE_TICKS + 1)
		return 0;
	for (int i = 0; i < PASSAGE_PLACES; i++) {
		__u64 place = *(const volatile __u64 *)&set->place[i];
		__u32 way = place & WAY_MASK;

		if (untimed(place) != place_of(pair, way) || !is_new(place, now, PASSAGE_TICKS))
			continue;
		/* Of two tenants with the same addresses nobody knows whose it is. */
		if (found != NO_PASSAGE && found != way)
			return 0;
		found = way;
	}
	return found;
}

#endif
