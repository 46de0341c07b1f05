/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Slots hold the outer header while a service function has the inner packet.
 *
 * Functions that look up a slot return null if it does not exist. A slot belongs to a packet only
 * if is_slot_of() is true for the packet's tag: later packets reuse slots. Tags are in host byte
 * order.
 *
 * A tag identifies the slot of a packet. On the way into the kernel, the tag is the source MAC
 * address of the frame, which every XDP mode and every driver preserves, and which prevents GRO
 * from merging packets with different outer headers. Inside the kernel, the tag is the packet's
 * timestamp (skb->tstamp): it is the only field that forwarding, NAT, fragmentation and queues
 * preserve and that rules do not write.
 */
#ifndef KAIDO_SRV6_SLOT_H
#define KAIDO_SRV6_SLOT_H

#include "bytes.h"
#include "maps.h"

#define COUNTER_BITS 36

/* Destination MAC address that marks a packet for reprocessing, since its next segment is another
 * local SID. The source MAC address carries the ingress ifindex. */
#define AGAIN_MAC_HIGH bpf_htonl(0x024b4149)
#define AGAIN_MAC_LOW bpf_htons(0x4432)

/* Allocates the next slot of this CPU and stores its tag in `*tag`. */
static __always_inline struct slot *take_slot(const struct control *control, __u32 row, __u64 *tag)
{
	__u32 zero = 0;
	__u64 *count = bpf_map_lookup_elem(&slot_heads, &zero);

	if (!count)
		return 0;
	__u64 number = *count;

	/* Start at a random offset, so that tags do not collide with those of packets in flight
	 * from a previous program. */
	if (!number)
		number = (__u64)bpf_get_prandom_u32() << 4;
	*count = ++number;
	__u32 at = row * (control->slots + 1) + (number & control->slots);

	*tag = (__u64)row << COUNTER_BITS | (number & ((1ull << COUNTER_BITS) - 1));
	return bpf_map_lookup_elem(&slots, &at);
}

/* Returns the slot of a tag. It may already belong to another packet. */
static __always_inline const struct slot *slot_of(const struct control *control, __u64 tag)
{
	__u32 row = tag >> COUNTER_BITS;
	__u32 at = row * (control->slots + 1) + (tag & control->slots);

	return bpf_map_lookup_elem(&slots, &at);
}

/* Reads a tag from bytes, in the order of `slot.tag` and of the frame. */
static __always_inline __u64 tag_at(const void *bytes)
{
	return load32(bytes) | (__u64)load16(bytes + 4) << 32;
}

static __always_inline void store_tag(void *to, __u64 tag)
{
	store32(to, tag);
	store16(to + 4, tag >> 32);
}

/* Layout of a slot's first word: tag, length, flags. It is written last, in a single store. */
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

/* True if the slot belongs to the packet with this tag and is complete. */
static __always_inline int is_slot_of(const struct slot *slot, __u64 tag)
{
	__u64 word = first_word_of(slot);

	return !((word ^ tag) << (64 - SLOT_LENGTH_AT)) && (__u8)(word >> SLOT_LENGTH_AT);
}

/* Size of an IPv6 header and an SRH with one segment. */
#define OUTER_LEAST 64

/* Copies an outer header, which grows by 16 bytes for each further segment. Returns 0, or -1 on
 * invalid bounds. `packet` is whichever of `to` and `from` points into a packet, which ends at
 * `end`. The loops are unrolled: 40 instructions for two segments, compared with 150 for a loop
 * over 8-byte words or for bpf_skb_store_bytes(). */
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

/* Increments the TTL: the inverse of the kernel's ip_decrease_ttl(), including the checksum (RFC
 * 1624). Zero has two checksum representations; the result is the transmitted one. */
static __always_inline void raise_ttl(struct iphdr *ip)
{
	__u32 check = ip->check ? ip->check : 0xffff;

	ip->check = check - bpf_htons(0x0100);
	ip->ttl++;
}

#endif
