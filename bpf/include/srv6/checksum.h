/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The Internet checksum (RFC 1071). Sums are in wire byte order and not complemented. */
#ifndef KAIDO_SRV6_CHECKSUM_H
#define KAIDO_SRV6_CHECKSUM_H

#include "frame.h"

/* Returns the one's complement sum of a 20-byte header; 0xffff if its checksum is correct. */
static __always_inline __u16 header_sum(const struct iphdr *ip)
{
	const __u32 *word = (const __u32 *)ip;
	__u64 sum = (__u64)word[0] + word[1] + word[2] + word[3] + word[4];

	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum + (sum >> 16);
}

/* Mask of offsets in the frame, and the longest data that sum_of() adds up: a jumbo frame. */
#define MAX_SUMMED 16383

/* Adds the next `size` bytes to `sum`, if `left` bytes are at least that. Returns 0 if they are not,
 * negative if they are not in the linear part of the frame. */
static __always_inline int add_block(struct xdp_md *ctx, __u32 *at, __u32 *left, __u32 size,
				     __s64 *sum)
{
	void *block = (void *)(long)ctx->data + (*at & MAX_SUMMED);

	if (*left < size)
		return 0;
	if (block + size > (void *)(long)ctx->data_end)
		return -1;
	*sum = bpf_csum_diff(0, 0, block, size, *sum);
	*at += size;
	*left -= size;
	return 1;
}

/* Returns the one's complement sum of `left` bytes at offset `at` of the frame, in 16 bits, plus `sum`;
 * negative if they are not all in the linear part of the frame, or too many. Not static: the verifier
 * then follows the blocks once, and for any offset. */
__noinline int sum_of(struct xdp_md *ctx, __u32 at, __u32 left, __u32 seed)
{
	__s64 sum = seed;
	int added = 1;

	for (int i = 0; i < MAX_SUMMED / 256 && added > 0; i++)
		added = add_block(ctx, &at, &left, 256, &sum);
	if (added < 0 || left >= 256)
		return -1;
	if (add_block(ctx, &at, &left, 128, &sum) < 0 || add_block(ctx, &at, &left, 64, &sum) < 0 ||
	    add_block(ctx, &at, &left, 32, &sum) < 0 || add_block(ctx, &at, &left, 16, &sum) < 0 ||
	    add_block(ctx, &at, &left, 8, &sum) < 0 || add_block(ctx, &at, &left, 4, &sum) < 0)
		return -1;
	const void *last = (void *)(long)ctx->data + (at & MAX_SUMMED);
	const void *end = (void *)(long)ctx->data_end;
	__u64 whole = (__u32)sum;

	if (left & 2) {
		if (last + 2 > end)
			return -1;
		whole += load16(last);
		last += 2;
	}
	if (left & 1) {
		if (last + 1 > end)
			return -1;
		whole += *(const __u8 *)last;
	}
	whole = (whole & 0xffff) + (whole >> 16 & 0xffff) + (whole >> 32);
	whole = (whole & 0xffff) + (whole >> 16);
	return (whole & 0xffff) + (whole >> 16);
}

#endif
