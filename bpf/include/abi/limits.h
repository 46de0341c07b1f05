/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Sizes that the program and user space agree on. */
#ifndef KAIDO_ABI_LIMITS_H
#define KAIDO_ABI_LIMITS_H

enum limit {
	/* Number of port slots. The low bits of the interface index select the slot; two interfaces
	 * that share a slot are refused. A power of two. */
	LIMIT_PORTS = 16384,
	/* Number of slots for VLANs in the SR domain. A power of two. */
	LIMIT_VLAN_SLOTS = 4096,
	/* Log2 of the number of adjacencies that each CPU caches. */
	LIMIT_ADJACENCY_BITS = 15,
	/* Log2 of the number of SIDs, and of policies, that each CPU caches by address. */
	LIMIT_FOUND_BITS = 15,
	/* Number of egress interfaces whose unresolved next hops are kept apart. The low bits of
	 * the interface index select the slots. A power of two. */
	LIMIT_UNRESOLVED_LINKS = 1024,
	/* Log2 of the number of unresolved next hops of an egress interface. Others are reported by
	 * their next packet. */
	LIMIT_UNRESOLVED_BITS = 2,
	/* Longest outer header: IPv6 and an SRH of ten segments. With its link-layer header it uses
	 * the 216 bytes by which XDP can grow a frame on a veth. Other drivers provide at least
	 * that. */
	LIMIT_OUTER = 208,
	/* Number of slots among which a policy with several segment lists distributes its flows. A
	 * power of two. */
	LIMIT_SPREAD = 64,
	/* Number of sets in `passages` if service functions are configured. A power of two. */
	LIMIT_PASSAGES = 16384,
	/* Number of packets in flight in the functions reached through one interface (End.AD). A
	 * power of two. Without a link-layer tag, a packet originated by such a function is
	 * mistaken for a returning one with probability at most LIMIT_PROXIED / 2^32: see
	 * end_ad.h. */
	LIMIT_PROXIED = 8192,
	/* Lifetime of such a packet, in ticks of 2^20 ns: 4.3 s. */
	LIMIT_PROXIED_TICKS = 4096,
	LIMIT_PROXIED_TICK_BITS = 20,
	/* Lifetime of a generation while the daemon does not run. */
	LIMIT_TICK_NS = 100000000,
	/* The first counters are those of the reasons: left to the kernel, then dropped. */
	LIMIT_REASONS = 64,
};

/* Number of distinct prefix lengths: the bits of an address, and the default route. */
#define LENGTHS4 33
#define LENGTHS6 129

#endif
