/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Tracing. */
#ifndef KAIDO_ABI_TRACE_H
#define KAIDO_ABI_TRACE_H

#include <linux/types.h>

/* A prefix of one family, in wire byte order; IPv4 in the first 4 bytes. */
struct trace_prefix {
	__u64 address[2];
	__u64 mask[2];
};

/* Selects the packets to trace. */
struct trace_filter {
	struct trace_prefix source;
	struct trace_prefix destination;
	__u32 ifindex; /* ingress interface; 0 for all */
	__s32 left;    /* number of packets still to trace */
	__u16 vlan;    /* outer VLAN tag; 0 for all */
	__u8 family;   /* 4 or 6; 0 for all, in which case the addresses are ignored */
	__u8 pad[5];
};
_Static_assert(sizeof(struct trace_filter) == 80, "no hidden padding");

/* A traced packet, as received. */
struct traced_packet {
	__u64 at_ns; /* CLOCK_MONOTONIC */
	__u32 ifindex;
	__u32 length; /* of the whole frame, which may exceed `bytes` */
	__u8 bytes[2032];
};
_Static_assert(sizeof(struct traced_packet) == 2048, "a power of two");

#endif
