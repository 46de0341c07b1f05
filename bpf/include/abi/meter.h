/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Flows and counts of applications. */
#ifndef KAIDO_ABI_METER_H
#define KAIDO_ABI_METER_H

#include <linux/types.h>

/* Maximum number of flows that one node counts. One application has a few, separated by address
 * family. */
#define METER_FLOWS 1024

/* Maximum number of applications that one node counts. */
#define METER_SLOTS 512

/* Matches every DSCP. No code point has this value. */
#define METER_ANY_DSCP 0xff

/* A flow to count. A packet matches if all fields match. */
struct meter_flow {
	__be32 src[4];      /* masked; IPv4 in the first word */
	__be32 src_mask[4];
	__be32 dst[4];
	__be32 dst_mask[4];
	__u16 src_port_first; /* host byte order; 0 to 65535 matches every port */
	__u16 src_port_last;
	__u16 dst_port_first;
	__u16 dst_port_last;
	__u16 slot;         /* counter index, below METER_SLOTS */
	__u8 version;       /* 4 or 6; 0 marks the end of the list */
	__u8 protocol;      /* 0 matches every protocol */
	__u8 dscp;          /* METER_ANY_DSCP matches every code point */
	__u8 pad[3];
};
_Static_assert(sizeof(struct meter_flow) == 80, "no hidden padding");

/* Packet and byte count of an application. */
struct meter_count {
	__u64 packets; /* on the wire: a GSO packet counts as its segments */
	__u64 bytes;   /* layer 2 on the wire, including the headers of each segment */
};
_Static_assert(sizeof(struct meter_count) == 16, "no hidden padding");

#endif
