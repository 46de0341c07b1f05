/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * REPLACE-C-SID (RFC 9800 section 4.2): the segment list has entries with several compressed SIDs, and
 * the last bits of the destination address are the index of the current one. The next one replaces
 * it in the address.
 *
 * Addresses are in wire byte order, `struct bits` is in host byte order.
 */
#ifndef KAIDO_SRV6_REPLACE_CSID_H
#define KAIDO_SRV6_REPLACE_CSID_H

#include "end.h"

/* Length of a compressed SID in bytes: 2 or 4. */
static __always_inline __u32 csid_length(const struct sid *sid)
{
	return sid->csid & 15;
}

/* Returns the index in a destination address, from 0 to 7 or to 3. */
static __always_inline __u32 index_of(const struct sid *sid, const void *address)
{
	return *(const __u8 *)(address + 15) & (16 / csid_length(sid) - 1);
}

/* Returns the compressed SID at an index of the segment list's entry `entry`, in host byte order. 0,
 * which is not a C-SID, beyond the frame. */
static __always_inline __u32 csid_at(const struct frame *frame, const struct sid *sid,
				     const struct srh *srh, __u32 entry, __u32 index)
{
	/* Segments Left has eight bits. The verifier does not know it after a decrement. */
	const void *at = (const void *)(srh + 1) + 16 * (entry & 0xff);

	if (csid_length(sid) == 4) {
		at += 4 * (index & 3);
		return at + 4 > end_of(frame) ? 0 : bpf_ntohl(load32(at));
	}
	at += 2 * (index & 7);
	return at + 2 > end_of(frame) ? 0 : bpf_ntohs(load16(at));
}

/* True if no compressed SID follows in the last entry of the segment list. */
static __always_inline int is_last_csid(const struct frame *frame, const struct sid *sid,
					const struct srh *srh, __u32 index)
{
	return !index || !csid_at(frame, sid, srh, 0, index - 1);
}

/* Returns a destination address with another compressed SID, and another index. */
static __always_inline struct bits with_csid(const struct sid *sid, struct bits address, __u32 csid,
					     __u32 index)
{
	__u32 length = 8 * csid_length(sid), after = 128 - 8 * (sid->csid >> 4) - length;
	struct bits ones = shifted_left((struct bits){0, (1ull << length) - 1}, after);
	struct bits field = shifted_left((struct bits){0, csid}, after);

	address.high = (address.high & ~ones.high) | field.high;
	address.low = (address.low & ~ones.low) | field.low;
	address.low = (address.low & ~(__u64)(16 / csid_length(sid) - 1)) | index;
	return address;
}

/*
 * Makes the next segment of a packet with an SRH, which exists, its destination. Returns 1 if no segment
 * follows it, otherwise 0, or -1 if the SRH is malformed. The kernel has no such SID, so that the packet is
 * never left to it. The numbers of lines are those of RFC 9800 section 4.2.1. Not inline, to use less
 * stack.
 */
static __noinline int replace_csid(struct xdp_md *ctx, const struct sid *sid)
{
	const struct frame frame = {.ctx = ctx};
	struct ipv6hdr *ip = data_of(&frame) + ETH_HLEN;
	struct srh *srh = (void *)(ip + 1);

	if ((void *)(srh + 1) > end_of(&frame))
		return -1;
	__u32 left = srh->segments_left, index = index_of(sid, &ip->daddr), csid;

	if (index) {
		if (left > srh->last_entry) /* S10 */
			return -1;
		index--;
		csid = csid_at(&frame, sid, srh, left, index);
		if (!csid) { /* S14: the next entry is a whole SID */
			const void *entry = segment_of(srh);

			if (!left || entry + 16 > end_of(&frame))
				return -1;
			store64(&ip->daddr, high(entry));
			store64((void *)&ip->daddr + 8, low(entry));
			srh->segments_left--;
			return left == 1;
		}
	} else {
		left--; /* S24 */
		srh->segments_left--;
		index = 16 / csid_length(sid) - 1;
		csid = csid_at(&frame, sid, srh, left, index);
	}
	struct bits address = {bpf_be64_to_cpu(high(&ip->daddr)), bpf_be64_to_cpu(low(&ip->daddr))};

	address = with_csid(sid, address, csid, index);
	store64(&ip->daddr, bpf_cpu_to_be64(address.high));
	store64((void *)&ip->daddr + 8, bpf_cpu_to_be64(address.low));
	return !left && is_last_csid(&frame, sid, srh, index);
}

#endif
