/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Accessors for the record of a SID. */
#ifndef KAIDO_SRV6_SID_H
#define KAIDO_SRV6_SID_H

#include "route.h"

/* True if the kernel has this SID too. */
static __always_inline int is_in_kernel(const struct sid *sid)
{
	return sid->flags & SID_IN_KERNEL;
}

static __always_inline int has_next_hop(const struct sid *sid)
{
	return sid->behavior == BEHAVIOR_END_X || sid->behavior == BEHAVIOR_END_DX4 ||
	       sid->behavior == BEHAVIOR_END_DX6;
}

/* Returns the ROUTE_TABLE in which to look up a packet that the SID has processed. */
static __always_inline __u64 table_of(const struct frame *frame, const struct sid *sid, int family)
{
	__u32 table = sid->params.table.number, vrf = sid->params.table.vrf;

	if (has_next_hop(sid))
		return ROUTE_TABLE(family, frame->port->ifindex, 0);
	if (vrf)
		return ROUTE_TABLE(family, vrf, ROUTE_IN_VRF);
	return ROUTE_TABLE(family, frame->port->ifindex, table);
}

#endif
