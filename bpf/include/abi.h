/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The one home of map keys and values. User space takes these types from the objects' BTF, so a
 * change here is a change there.
 */
#ifndef KAIDO_ABI_H
#define KAIDO_ABI_H

#include <linux/types.h>

/* The most flows that one node counts; one application has a few, by address family. */
#define METER_FLOWS 1024

/* The most applications that one node counts. */
#define METER_SLOTS 512

/* A match on every DSCP: no code point has this value. */
#define METER_ANY_DSCP 0xff

/* A flow to count. A packet matches when every part does. */
struct meter_flow {
	__be32 src[4];      /* already masked; IPv4 in the first word */
	__be32 src_mask[4];
	__be32 dst[4];
	__be32 dst_mask[4];
	__u16 src_port_first; /* host byte order; 0 to 65535 for every port */
	__u16 src_port_last;
	__u16 dst_port_first;
	__u16 dst_port_last;
	__u16 slot;         /* the counter: below METER_SLOTS */
	__u8 version;       /* 4 or 6; 0 ends the list */
	__u8 protocol;      /* 0 for every protocol */
	__u8 dscp;          /* METER_ANY_DSCP for every code point */
	__u8 pad[3];
};
_Static_assert(sizeof(struct meter_flow) == 80, "no hidden padding");

/* What was counted. */
struct meter_count {
	__u64 packets; /* as on the wire: a GSO super-frame counts as its segments */
	__u64 bytes;   /* layer-2 bytes as on the wire, each segment's headers included */
};
_Static_assert(sizeof(struct meter_count) == 16, "no hidden padding");

#endif
