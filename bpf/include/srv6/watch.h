/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Watchdog timer: starts a new generation on every tick while the daemon does not run. Packets are
 * then still forwarded, with routes that are at most LIMIT_TICK_NS old. The timer also updates the
 * time of the reply table.
 *
 * tick() always returns 0, as a timer callback must.
 */
#ifndef KAIDO_SRV6_WATCH_H
#define KAIDO_SRV6_WATCH_H

#include "passage.h"

#define CLOCK_MONOTONIC 1

struct watch {
	struct bpf_timer timer;
	__u32 heartbeat; /* last value seen */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct watch);
} watches SEC(".maps");

static int tick(void *map, __u32 *key, struct watch *watch)
{
	struct control *state = bpf_map_lookup_elem(&control, key);

	if (!state)
		return 0;
	if (state->heartbeat == watch->heartbeat) {
		/* Without the daemon, nothing reports rules or routes that depend on more than the
		 * destination. */
		*(volatile __u64 *)&state->exact = ~0ull;
		if (__sync_add_and_fetch(&state->generation, 1) == 0)
			__sync_fetch_and_add(&state->generation, 1);
	}
	watch->heartbeat = state->heartbeat;
	set_passage_time(state);
	bpf_timer_start(&watch->timer, LIMIT_TICK_NS, 0);
	return 0;
}

#endif
