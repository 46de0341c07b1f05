/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Where packets come from: whether a packet may address a SID (RFC 8754 section 5.1), and whether a
 * tenant's packet has one of the tenant's own addresses. Where no file asks for it, none of this runs.
 */
#ifndef KAIDO_SRV6_SOURCE_H
#define KAIDO_SRV6_SOURCE_H

#include "frame.h"

/* Whether an address is in one of the owner's `sources`. Not inline: the key would take the stack of
 * packets that need no look-up. IPv4 in the first 4 bytes of `high`. */
static __noinline int is_source(__u32 owner, __u64 high, __u64 low)
{
	struct source key = {
		.length = owner & FOUND_IPV6 ? 32 + 128 : 32 + 32,
		.owner = owner,
		.address = {high, low},
	};

	return bpf_map_lookup_elem(&sources, &key) != 0;
}

/* Why a packet to a SID is dropped on its port; -1 if it is not. */
static __always_inline int refused_to_sid(const struct frame *frame, const struct ipv6hdr *ip)
{
	if (frame->port->flags & PORT_EDGE)
		return REASON_EDGE;
	if (frame->port->flags & PORT_SOURCES &&
	    !is_source(FOUND_IPV6, high(&ip->saddr), low(&ip->saddr)))
		return REASON_FOREIGN_SOURCE;
	return -1;
}

/* Whether a packet comes from where the domain ends, and has an address of the domain's: other nodes
 * would take it for one of theirs. */
static __always_inline int is_spoofed(const struct frame *frame, const struct ipv6hdr *ip)
{
	__u16 both = PORT_EDGE | PORT_SOURCES;

	return (frame->port->flags & both) == both &&
	       is_source(FOUND_IPV6, high(&ip->saddr), low(&ip->saddr));
}

#endif
