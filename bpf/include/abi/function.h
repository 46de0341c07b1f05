/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* State of packets in service functions. */
#ifndef KAIDO_ABI_FUNCTION_H
#define KAIDO_ABI_FUNCTION_H

#include <linux/types.h>
#include "limits.h"

/*
 * Saved state of a packet that is in a service function (netfilter): its outer header, with
 * Segments Left already decremented, and the information needed to send it on.
 *
 * Each CPU has a ring of slots. A slot is reused after as many further packets as the ring has
 * slots. Packets that the function fragments, reassembles or duplicates share one slot.
 */
struct slot {
	__u8 tag[6];      /* of the packet: 12 bits of CPU number, 36 bits of a counter */
	__u8 length;      /* of the outer header; 0 while it is written */
	__u8 flags;       /* SLOT_* */
	__u32 generation; /* `ifindex` and `ethernet` are valid while equal to that of `control`;
			   * 0: never */
	__u32 ifindex;    /* egress port */
	__u32 mark;       /* the SID's argument; End.AD: arrival time in units of 2^20 ns */
	__u32 counter;    /* of returning packets */
	__u32 port;       /* ingress port */
	__u8 station[6];  /* source MAC address of the packet */
	__u8 ethernet[14];
	__u8 header[LIMIT_OUTER];
};
_Static_assert(sizeof(struct slot) == 256, "whole cache lines");

/* The hook at which rules drop a packet of a service function. */
enum hook {
	HOOK_PREROUTING,
	HOOK_FORWARD,
	HOOK_POSTROUTING,
	NO_HOOK, /* dropped by the kernel itself */
	HOOKS,
};

/* Packets dropped by a service function, counted on one CPU. */
struct drops {
	__u64 packets[HOOKS];
};

enum slot_flag {
	SLOT_IPV6 = 1,   /* the inner packet is IPv6 */
	SLOT_RAISED = 2, /* the hop limit was incremented, since the kernel decrements it */
	SLOT_AGAIN = 4,  /* the next segment is local to this node */
	SLOT_ROUTED = 8, /* End.AD: the tag returns as the packet's hash, not in the frame */
};

/*
 * Reply table: the address pairs of inner packets that recently entered netfilter.
 *
 * A local reply to such a packet must not leave unencapsulated. Each pair maps to one set, which is
 * one cache line.
 */
#define PASSAGE_PLACES 7

struct passages {
	/* One pair per entry; 0 for a free entry. See passage.h. */
	__u64 place[PASSAGE_PLACES];
	/* Time of the last insertion that found the set full. */
	__u32 full;
	__u32 pad;
};
_Static_assert(sizeof(struct passages) == 64, "one cache line");

/* Indices of `function_devices`. */
enum function_device {
	DEVICE_NETFILTER,
	DEVICE_PROXIES,
	DEVICES,
};

/* The path of a SID's packets to its service function (End.AS, End.AD, End.AM), and the state
 * needed for their return. */
struct proxy {
	__u64 via[2];   /* next-hop address of the function; IPv4 in the first 4 bytes */
	__u32 to;       /* IFACE-OUT; 0 while it is down or missing */
	__u32 ring;     /* AD: ring of slots, one per IFACE-IN */
	__u32 policy;   /* AS: the outer headers to push */
	__u32 counter;  /* of returning packets */
	__u32 port;     /* AS, AM: ingress port of returning packets for further processing */
	__u8 station[6]; /* MAC address of `to` */
	__u8 family;    /* of `via`; 0 for none: the function accepts any destination MAC address */
	__u8 behavior;
	__u32 back;     /* IFACE-IN, on which packets return */
};
_Static_assert(sizeof(struct proxy) == 48, "no hidden padding");

/* Treatment of packets received on an interface that leads to service functions. If both fields are
 * 0, no packets are expected on it. */
struct back {
	__u32 ring;  /* AD: ring of the slots, plus one; 0 for none */
	__u32 proxy; /* AS, AM: proxy of these packets; 0 for none */
};
_Static_assert(sizeof(struct back) == 8, "no hidden padding");

#endif
