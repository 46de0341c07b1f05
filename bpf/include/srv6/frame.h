/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * A frame in the program: the position of its headers, its counters, and the verdicts that do not
 * forward it.
 *
 * leave(), pass() and drop() return an XDP action. The program decides before it writes: a caller
 * of leave() must not have changed a byte, except for removing Ethernet padding.
 */
#ifndef KAIDO_SRV6_FRAME_H
#define KAIDO_SRV6_FRAME_H

#include "bytes.h"
#include "maps.h"

struct frame {
	struct xdp_md *ctx;
	const struct control *control;
	const struct port *port;
	__u32 row;    /* this CPU's row of counters and caches */
	__u32 l3;     /* offset of layer 3: 14, plus 4 or 8 with VLAN tags */
	__u32 length; /* of layer 3, according to its header */
};

static __always_inline void *data_of(const struct frame *frame)
{
	return (void *)(long)frame->ctx->data;
}

static __always_inline void *end_of(const struct frame *frame)
{
	return (void *)(long)frame->ctx->data_end;
}

static __always_inline void add_to(const struct frame *frame, __u32 counter)
{
	__u32 at = frame->row * frame->control->counters + counter;
	struct count *count = bpf_map_lookup_elem(&counts, &at);

	if (count) {
		count->packets++;
		count->bytes += frame->length;
	}
}

/* Leaves the packet to the kernel if it has the same entry, so that it decides as it would without
 * the program. Otherwise drops the packet. */
static __always_inline int leave(const struct frame *frame, enum reason reason, int in_kernel)
{
	add_to(frame, in_kernel ? reason : REASONS + reason);
	return in_kernel ? XDP_PASS : XDP_DROP;
}

static __always_inline int pass(const struct frame *frame, enum reason reason)
{
	return leave(frame, reason, 1);
}

static __always_inline int drop(const struct frame *frame, enum reason reason)
{
	return leave(frame, reason, 0);
}

/* Trims Ethernet padding, as the kernel does. Returns 0, or -1 if the frame is shorter than its
 * packet. Invalidates pointers into the frame. */
static __always_inline int fit(const struct frame *frame)
{
	__u32 linear = end_of(frame) - data_of(frame);
	__u32 wanted = frame->l3 + frame->length;

	if (linear == wanted)
		return 0;
	/* The rest may be in fragments (xdp.frags). */
	__u32 whole = bpf_xdp_get_buff_len(frame->ctx);

	if (whole < wanted)
		return -1;
	return whole > wanted ? bpf_xdp_adjust_tail(frame->ctx, (int)wanted - (int)whole) : 0;
}

/* True for addresses that the kernel does not forward from or to, or treats specially: unspecified,
 * loopback, IPv4-mapped (all of ::/64), link-local, multicast (RFC 4291 section 2). `high` is the
 * first word, in wire byte order. */
static __always_inline int is_special6(__u64 high)
{
	__u16 first = bpf_ntohs((__u16)high);

	if (high && first < 0xfe80)
		return 0;
	return !high || first >= 0xff00 || (first & 0xffc0) == 0xfe80;
}

/* The same for IPv4: this network, loopback, multicast and above (RFC 6890). */
static __always_inline int is_special4(__be32 address)
{
	__u8 first = address & 0xff;

	/* 0 and 224 to 255, then 127. */
	return (__u8)(first - 1) >= 223 || first == 127;
}

#endif
