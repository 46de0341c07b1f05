/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Results of route lookups. */
#ifndef KAIDO_ABI_ROUTE_H
#define KAIDO_ABI_ROUTE_H

#include <linux/types.h>

/* The inputs of a route lookup. All fields are 64-bit words, so that a comparison needs no partial
 * words. */
struct route_key {
	__u64 dst[2]; /* IPv4 in the first 4 bytes, the rest zero */
	__u64 src[2];
	__u64 flow;  /* ROUTE_FLOW: other inputs to rules and to the multipath hash */
	__u64 table; /* ROUTE_TABLE: the table, or the rules that select it */
};
_Static_assert(sizeof(struct route_key) == 48, "no hidden padding");

/* The result of a lookup in the kernel's tables, in the cache of one CPU. No other CPU reads or
 * writes the entry. */
struct adjacency {
	struct route_key key;
	__u32 generation; /* valid while equal to that of `control` */
	__u32 ifindex;    /* egress port */
	__u8 stations[12]; /* destination MAC address (the next hop), then source MAC address
			    * (the port) */
	__u16 mtu;
	__u16 outer;
	__u16 inner;
	__u8 pad[6];
};
_Static_assert(sizeof(struct adjacency) == 80, "no hidden padding");

/* A next hop that could not be resolved. The daemon starts its resolution and clears the entry. */
struct unresolved {
	__u64 address[2]; /* IPv4 in the first 4 bytes */
	__u32 ifindex;    /* 0 for none */
	__u32 ipv6;
};
_Static_assert(sizeof(struct unresolved) == 24, "no hidden padding");

#endif
