/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * GTP-U (3GPP TS 29.281), and sessions in SIDs (RFC 9433 section 6.1).
 *
 *  0                   1                   2                   3
 * +-----+-+-+-+-+-+---------------+-------------------------------+
 * |  1  |1|0|E|S|N| Message Type  |            Length             |
 * +-----+-+-+-+-+-+---------------+-------------------------------+
 * |               Tunnel Endpoint Identifier (TEID)               |
 * +-------------------------------+---------------+---------------+
 * |   Sequence Number (optional)  |  N-PDU Number | Next Ext Type |
 *
 * The last line is present if one of the flags E, S and N is set.
 *
 * A session is Args.Mob.Session in host byte order: QFI (6 bits), R, U, PDU Session ID (32 bits),
 * which is the TEID.
 */
#ifndef KAIDO_SRV6_GTP_H
#define KAIDO_SRV6_GTP_H

#include "end.h"

#include <linux/udp.h>

#define GTP_PORT 2152
/* Version 1 and protocol type GTP, and the mask of these fields. */
#define GTP_FLAGS 0x30
#define GTP_FLAGS_MASK 0xf0
#define GTP_NEXT 0x04
#define GTP_OPTIONAL 0x07
#define GTP_G_PDU 255
/* Extension headers that are skipped. */
#define GTP_EXTENSIONS 4
/* Type of the PDU Session Container (3GPP TS 38.415 section 5.5.2), and its types of PDUs. */
#define GTP_PDU_SESSION 0x85
#define PDU_DOWNLINK 0
#define PDU_UPLINK 1

struct gtp_header {
	__u8 flags;
	__u8 type;
	__be16 length; /* of all that follows the TEID */
	__be32 teid;
};

/* The optional fields, and a PDU Session Container. */
struct gtp_container {
	__be16 sequence;
	__u8 number;
	__u8 next;
	__u8 length; /* in units of 4 bytes */
	__u8 pdu_type; /* in the high 4 bits */
	__u8 flow; /* QFI in 6 bits; in downlinks, RQI in the bit before them */
	__u8 last;
};

#define GTP_FLOW_MASK 0x3f
#define GTP_REFLECTIVE 0x40

/* Returns the first byte of Args.Mob.Session for the bytes `pdu_type` and `flow` of a container. */
static __always_inline __u8 flow_of(__u8 pdu_type, __u8 flow)
{
	int is_reflective = pdu_type >> 4 == PDU_DOWNLINK && flow & GTP_REFLECTIVE;

	return (flow & GTP_FLOW_MASK) << 2 | is_reflective << 1;
}

/* Returns the byte `flow` of a container for a session. */
static __always_inline __u8 container_flow(__u64 session, __u8 pdu_type)
{
	__u8 first = session >> 32;
	int is_reflective = first & 2 && pdu_type == PDU_DOWNLINK;

	return first >> 2 | (is_reflective ? GTP_REFLECTIVE : 0);
}

/* The addresses and fields of an outer header that are kept while a packet changes between GTP-U and
 * SRv6. In a map, because the stack has no room for them during the lookup of a route. */
struct gtp_tunnel {
	struct bits addresses; /* IPv6: the destination; IPv4: source and destination in the high word */
	__u64 session;
	__u64 hash;     /* of the flow */
	__u32 at;       /* offset of the payload of the old outer header */
	__u32 length;   /* of the new payload */
	__u8 hop_limit;
	__u8 traffic_class;
	__u8 is_ipv6;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gtp_tunnel);
} gtp_tunnels SEC(".maps");

/* The result of find_pdu(): the session in the low bits, and the offset of the T-PDU in the frame. */
#define GTP_OFFSET_SHIFT 48
#define GTP_OFFSET_MASK 0x3fff
#define GTP_SESSION_MASK 0xffffffffffull
/* Another message of GTP-U, such as an echo request. */
#define GTP_SIGNALLING 1

/* Parses the UDP and GTP-U headers at offset `at` of the frame, of `length` bytes with the payload.
 * Returns the T-PDU of a G-PDU, see above; GTP_SIGNALLING; or 0. Not static: the verifier follows the
 * extension headers once. */
__noinline __u64 find_pdu(struct xdp_md *ctx, __u32 at, __u32 length)
{
	const void *end = (void *)(long)ctx->data_end;
	const struct udphdr *udp = (void *)(long)ctx->data + (at & 0xfff);
	const struct gtp_header *gtp = (const void *)(udp + 1);
	__u32 size = sizeof(*udp) + sizeof(*gtp);
	__u8 next = 0, has_container = 0, flow = 0;

	if ((void *)(gtp + 1) > end || udp->dest != bpf_htons(GTP_PORT) ||
	    udp->len != bpf_htons(length) || (gtp->flags & GTP_FLAGS_MASK) != GTP_FLAGS ||
	    bpf_ntohs(gtp->length) + size != length)
		return 0;
	if (gtp->type != GTP_G_PDU)
		return GTP_SIGNALLING;
	__u32 teid = bpf_ntohl(gtp->teid);

	if (gtp->flags & GTP_OPTIONAL) {
		const __u8 *optional = (const void *)(gtp + 1);

		if (optional + 4 > (const __u8 *)end)
			return 0;
		next = gtp->flags & GTP_NEXT ? optional[3] : 0;
		size += 4;
	}
	for (int i = 0; i < GTP_EXTENSIONS && next; i++) {
		const __u8 *extension = (const void *)udp + size;

		if (extension + 4 > (const __u8 *)end)
			return 0;
		__u32 whole = 4 * (__u32)extension[0];

		if (!whole || (next == GTP_PDU_SESSION && has_container))
			return 0;
		if (next == GTP_PDU_SESSION) {
			flow = flow_of(extension[1], extension[2]);
			has_container = 1;
		}
		/* For the verifier of Linux 6.1, to which it could be negative. */
		extension += (whole - 1) & 0x3ff;
		if (extension + 1 > (const __u8 *)end)
			return 0;
		next = *extension;
		size += whole;
	}
	if (next || size >= length)
		return 0;
	return (__u64)(at + size) << GTP_OFFSET_SHIFT | (__u64)flow << 32 | teid;
}

static __always_inline struct bits shifted_right(struct bits bits, __u32 by)
{
	if (by >= 128)
		return (struct bits){0, 0};
	if (by >= 64)
		return (struct bits){0, bits.high >> (by - 64)};
	if (!by)
		return bits;
	return (struct bits){bits.high >> by, bits.low >> by | bits.high << (64 - by)};
}

static __always_inline struct bits bits_of(const void *address)
{
	return (struct bits){bpf_be64_to_cpu(high(address)), bpf_be64_to_cpu(low(address))};
}

/* Replaces the bits of `address` that are set in `mask` by those of `value`. Both are left-aligned and
 * moved right by `at`. */
static __always_inline struct bits replaced(struct bits address, struct bits value,
					    struct bits mask, __u32 at)
{
	value = shifted_right(value, at);
	mask = shifted_right(mask, at);
	return (struct bits){(address.high & ~mask.high) | value.high,
			     (address.low & ~mask.low) | value.low};
}

/* Writes an address. */
static __always_inline void store_bits(void *to, struct bits bits)
{
	store64(to, bpf_cpu_to_be64(bits.high));
	store64(to + 8, bpf_cpu_to_be64(bits.low));
}

#endif
