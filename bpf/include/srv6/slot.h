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
	/* Not where another program began, whose packets may be on their way. */
	if (!*count)
		*count = (__u64)bpf_get_prandom_u32() << 4;
	*count += 1;
	__u32 at = row * (control->slots + 1) + (*count & control->slots);
	struct slot *slot = bpf_map_lookup_elem(&slots, &at);

	*tag = (__u64)row << COUNTER_BITS | (*count & ((1ull << COUNTER_BITS) - 1));
	return slot;
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
	store16(to, tag);
	store16(to + 2, tag >> 16);
	store16(to + 4, tag >> 32);
}

/* Gives a packet one hop more: the inverse of what the kernel's ip_decrease_ttl() does, checksum
 * included (RFC 1624). Of the two checksums that stand for zero it is the one that is sent. */
static __always_inline void raise_ttl(struct iphdr *ip)
{
	__u32 check = (__u32)ip->check + 0xffff - bpf_htons(0x0100);

	check = (check + (check >> 16)) & 0xffff;
	ip->check = check == 0xffff ? 0 : check;
	ip->ttl++;
}

/* Whether it is that packet's, and whole. */
static __always_inline int is_slot_of(const struct slot *slot, __u64 tag)
{
	return *(const volatile __u8 *)&slot->length && tag_at(slot->tag) == tag;
}

#endif
