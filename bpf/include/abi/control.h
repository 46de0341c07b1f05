/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Global state. */
#ifndef KAIDO_ABI_CONTROL_H
#define KAIDO_ABI_CONTROL_H

#include <linux/types.h>
#include "prefixes.h"

/* Global state, written by the daemon and read for every packet. */
struct control {
	/* All ones if the route of a packet may depend on more than its destination and ingress
	 * port: on a rule, the source, the traffic class, or, for a multipath route, the flow.
	 * Otherwise 0. */
	__u64 exact;
	/* Nonzero if a route has a locked MTU, which limits forwarded packets. */
	__u32 locked_mtus;
	__u32 pad;
	/* An adjacency of another generation is looked up again. The generation changes with every
	 * route, rule, neighbor and link; if the daemon does not run, every LIMIT_TICK_NS. Never
	 * 0. */
	__u32 generation;
	/* A cached SID or policy of another version of SIDs, prefixes and policies is looked up
	 * again. Never 0. */
	__u32 version;
	/* Incremented while the daemon runs. */
	__u32 heartbeat;
	/* Number of counters of each CPU. */
	__u32 counters;
	/* Number of buckets of each index, minus one. Bucket counts are powers of two. */
	__u32 sid_buckets;
	__u32 prefix4_buckets;
	__u32 prefix6_buckets;
	/* Index of the active copy of `sids`. */
	__u32 active;
	/* Number of slots in each CPU's ring, minus one. The number is a power of two. */
	__u32 slots;
	/* The two ends of a veth: inner packets enter the kernel by the first and leave it by the
	 * second. */
	__u32 function_in;
	__u32 function_out;
	/* Prefix of a tag that is stored as a timestamp, so that no real timestamp is mistaken for
	 * a tag. */
	__u32 magic;
	/* Prefix lengths of the SIDs. */
	struct lengths6 sids[2];
	/* Number of sets in `passages`, minus one. The number is a power of two. */
	__u32 passages;
	/* Time for the reply table: in ticks of 2^30 ns, updated every LIMIT_TICK_NS. Never 0. */
	__u32 passage_time;
	/* The two ends of another veth: inner packets of proxies arrive from XDP on the first;
	 * packets to another local SID are sent to the second. */
	__u32 proxy_in;
	__u32 proxy_out;
	/* Random number of this program instance: another instance numbers its proxies
	 * differently. */
	__u32 program;
	/* The source of this node's outer headers, for End.M.GTP6.E. */
	__u64 source[2];
};
_Static_assert(sizeof(struct control) == 360, "no hidden padding");

#endif
