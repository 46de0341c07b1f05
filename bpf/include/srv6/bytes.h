/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Single-instruction loads and stores of packet bytes. Values keep the byte order of the packet.
 */
#ifndef KAIDO_SRV6_BYTES_H
#define KAIDO_SRV6_BYTES_H

#include "../abi.h"

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Loads and stores of unaligned words, one instruction each. Through packed structures such as
 * ethhdr, and for memcpy(), the compiler generates byte accesses. */
static __always_inline __u16 load16(const void *from)
{
	return *(const __u16 *)from;
}

static __always_inline __u32 load32(const void *from)
{
	return *(const __u32 *)from;
}

static __always_inline __u64 load64(const void *from)
{
	return *(const __u64 *)from;
}

static __always_inline void store16(void *to, __u16 value)
{
	*(__u16 *)to = value;
}

static __always_inline void store32(void *to, __u32 value)
{
	*(__u32 *)to = value;
}

static __always_inline void store64(void *to, __u64 value)
{
	*(__u64 *)to = value;
}

/* Copies a MAC address. */
static __always_inline void copy_station(void *to, const void *from)
{
	*(__u32 *)to = load32(from);
	store16(to + 4, load16(from + 4));
}

/* Returns the ethertype of the frame that starts at `ethernet`. */
static __always_inline __be16 ethertype_of(const void *ethernet)
{
	return load16(ethernet + 2 * ETH_ALEN);
}

/* True for the ethertype of a VLAN tag. */
static __always_inline int is_vlan(__be16 protocol)
{
	return protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD);
}

/* The two words of an IPv6 address. */
static __always_inline __u64 high(const void *address)
{
	return *(const __u64 *)address;
}

static __always_inline __u64 low(const void *address)
{
	return *(const __u64 *)(address + 8);
}

#endif
