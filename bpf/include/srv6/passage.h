/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Reply table: the address pairs of inner packets that recently entered netfilter.
 *
 * way_back_of() returns a return policy, 0 for none, or NO_PASSAGE if no packet matches. Addresses
 * are in network byte order.
 *
 * A reply that the kernel generates to a packet that it does not forward carries nothing of that
 * packet's slot. It does carry its addresses: an ICMP error quotes them, and a TCP reset has them
 * reversed.
 *
 * The table has no false negatives: a pair is recorded before its packet is forwarded, live entries
 * are never evicted, and a set that overflowed is marked as incomplete. An entry, including its
 * time, is one word, so that it is never seen half written.
 */
#ifndef KAIDO_SRV6_PASSAGE_H
#define KAIDO_SRV6_PASSAGE_H

#include "maps.h"
#include "prefix.h"

/* About one second, so that a shift suffices. */
#define PASSAGE_TICK_BITS 30
/* Time for which packets in netfilter can be replied to, in these ticks: longer than any queue
 * holds a packet, and longer than the kernel waits for fragments. */
#define PASSAGE_TICKS 120

/* Layout of an entry: hash of the pair, time, return policy. */
#define CHECK_AT 40
#define TIME_AT 28
#define TIME_MASK 0xfff
#define WAY_MASK ((1u << TIME_AT) - 1)

/* Returns the current time. It is never so small that a zeroed set looks full. The timer updates it
 * (`watch.h`): reading the clock for each packet takes 60 instructions. */
static __always_inline __u32 passage_time(const struct control *state)
{
	return *(const volatile __u32 *)&state->passage_time;
}

static __always_inline void set_passage_time(struct control *state)
{
	*(volatile __u32 *)&state->passage_time =
		(bpf_ktime_get_ns() >> PASSAGE_TICK_BITS) + PASSAGE_TICKS;
}

/* True if the entry is less than `ticks` old. An entry of another CPU may be one tick ahead. */
static __always_inline int is_new(__u64 place, __u32 now, __u32 ticks)
{
	return ((now + 1 - (__u32)(place >> TIME_AT)) & TIME_MASK) < ticks + 1;
}

/* Hash of a packet's source and destination. An attacker who causes a collision with another pair
 * can only suppress local replies to that pair, which spoofed addresses achieve as well. */
static __always_inline __u64 pair4(__be32 source, __be32 destination)
{
	return mix(source, destination, 0);
}

static __always_inline __u64 pair6(const __u64 *source, const __u64 *destination)
{
	return mix(mix(source[0], source[1], 0), destination[0], destination[1]);
}

/* Returns the entry of a pair and a return policy, with time 0. Never 0 itself. */
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

/* Inserts an entry, or marks the set as incomplete. */
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

/* Records a packet before it enters netfilter. `way`: the return policy for replies; 0 for none.
 * Returns 0, or -1 if the set does not exist. */
static __always_inline int remember_passage(const struct control *state, __u64 pair, __u32 way)
{
	struct passages *set = passages_of(state, pair);
	__u64 place = place_of(pair, way);
	__u32 now = passage_time(state);

	if (!set)
		return -1;
	/* Avoid needless writes: other CPUs read the cache line. */
	for (int i = 0; i < PASSAGE_PLACES; i++)
		if (*(volatile __u64 *)&set->place[i] == timed(place, now))
			return 0;
	take_place(set, place, now);
	return 0;
}

#define NO_PASSAGE (~0u)

/* Returns the return policy for a reply to a packet between these addresses: 0 for none, NO_PASSAGE
 * if there was no such packet. */
static __always_inline __u32 way_back_of(const struct control *state, __u64 pair)
{
	const struct passages *set = passages_of(state, pair);
	__u32 found = NO_PASSAGE, now = passage_time(state);

	/* In an incomplete set, any pair may be missing, with any return policy. */
	if (!set || now + 1 - *(const volatile __u32 *)&set->full < PASSAGE_TICKS + 1)
		return 0;
	for (int i = 0; i < PASSAGE_PLACES; i++) {
		__u64 place = *(const volatile __u64 *)&set->place[i];
		__u32 way = place & WAY_MASK;

		if (untimed(place) != place_of(pair, way) || !is_new(place, now, PASSAGE_TICKS))
			continue;
		/* Ambiguous: two tenants use the same addresses. */
		if (found != NO_PASSAGE && found != way)
			return 0;
		found = way;
	}
	return found;
}

#endif
