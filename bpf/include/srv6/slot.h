/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Slots: where the outer header stays while a service function has the inner packet.
 *
 * The packet's tag leads back to it. Into the kernel it is the frame's source address, which every
 * mode of XDP and every driver leaves alone, and which keeps GRO from merging packets with different
 * outer headers. Through the kernel it is the packet's time (skb->tstamp): forwarding, NAT, fragments
 * and queues keep that, and nothing else that rules do not write.
 */
#ifndef KAIDO_SRV6_SLOT_H
#define KAIDO_SRV6_SLOT_H

#include "bytes.h"
#include "maps.h"

#define COUNTER_BITS 36

/* Whom a packet is for that goes to another SID of this node; behind it the port where it came in. */
#define AGAIN_MAC_HIGH bpf_htonl(0x024b4149)
#define AGAIN_MAC_LOW bpf_htons(0x4432)

/* The next slot of this processor. Its tag is given to `*tag`. */
static __always_inline struct slot *take_slot(const struct control *control, __u32 row, __u64 *tag)
{
	__u32 zero = 0;
	__u64 *count = bpf_map_lookup_elem(&taken, &zero);

	if (!count)
		return 0;
	__u64 number = *count;

	/* Not where another program began, whose packets may be on their way. */
	if (!number)
		number = (__u64)bpf_get_prandom_u32() << 4;
	*count = ++number;
	__u32 at = row * (control->slots + 1) + (number & control->slots);

	*tag = (__u64)row << COUNTER_BITS | (number & ((1ull << COUNTER_BITS) - 1));
	return bpf_map_lookup_elem(&slots, &at);
}

/* The slot of a tag, which may be another one's by now. */
static __always_inline const struct slot *slot_of(const struct control *control, __u64 tag)
{
	__u32 row = tag >> COUNTER_BITS;
	__u32 at = row * (control->slots + 1) + (tag & control->slots);

	return bpf_map_lookup_elem(&slots, &at);
}

/* A tag as bytes, in the order in which they are in `slot.tag` and in a frame. */
static __always_inline __u64 tag_at(const void *bytes)
{
	return load32(bytes) | (__u64)load16(bytes + 4) << 32;
}

static __always_inline void store_tag(void *to, __u64 tag)
{
	store32(to, tag);
	store16(to + 4, tag >> 32);
}

/* A slot's first word: the tag, then the length and the flags. It is written last, and at once. */
#define SLOT_LENGTH_AT 48
#define SLOT_FLAGS_AT 56

static __always_inline void close_slot(struct slot *slot)
{
	void *word = slot;

	*(volatile __u64 *)word = 0;
	barrier();
}

static __always_inline void open_slot(struct slot *slot, __u64 tag, __u32 length, __u32 flags)
{
	void *word = slot;

	barrier();
	*(volatile __u64 *)word =
		tag | (__u64)length << SLOT_LENGTH_AT | (__u64)flags << SLOT_FLAGS_AT;
}

static __always_inline __u64 first_word_of(const struct slot *slot)
{
	const void *word = slot;

	return *(const volatile __u64 *)word;
}

/* Whether it is that packet's, and whole. */
static __always_inline int is_slot_of(const struct slot *slot, __u64 tag)
{
	__u64 word = first_word_of(slot);

	return !((word ^ tag) << (64 - SLOT_LENGTH_AT)) && (__u8)(word >> SLOT_LENGTH_AT);
}

/* IPv6, and an SRH of one segment. */
#define OUTER_LEAST 64

/* Copies an outer header, with 16 bytes for each further segment; `packet` is the one of the two that
 * is in a packet, which ends at `end`. Unrolled: 40 instructions for two segments, where a loop by 8
 * bytes and bpf_skb_store_bytes() took 150 each. */
static __always_inline int copy_held(void *to, const void *from, const void *packet,
				      const void *end, __u32 length)
{
	if (length < OUTER_LEAST || packet + OUTER_LEAST > end)
		return -1;
#pragma unroll
	for (__u32 at = 0; at < OUTER_LEAST; at += 8)
		store64(to + at, load64(from + at));
	if (length == OUTER_LEAST)
		return 0;
#pragma unroll
	for (__u32 at = OUTER_LEAST; at < LIMIT_OUTER; at += 16) {
		if (packet + at + 16 > end)
			return -1;
		store64(to + at, load64(from + at));
		store64(to + at + 8, load64(from + at + 8));
		if (at + 16 >= length)
			return 0;
	}
	return -1;
}

/* Gives a packet one hop more: the inverse of what the kernel's ip_decrease_ttl() does, checksum
 * included (RFC 1624). Of the two checksums that stand for zero it is the one that is sent. */
static __always_inline void raise_ttl(struct iphdr *ip)
{
	__u32 check = ip->check ? ip->check : 0xffff;

	ip->check = check - bpf_htons(0x0100);
	ip->ttl++;
}

#endif
