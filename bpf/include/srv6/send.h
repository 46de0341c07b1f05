/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The last step of forwarding: writes the link-layer header and redirects the frame to the
 * adjacency's port.
 *
 * send() returns an XDP action. VLAN tags are in host byte order, `protocol` in network byte order.
 * cut_head() invalidates pointers into the frame.
 */
#ifndef KAIDO_SRV6_SEND_H
#define KAIDO_SRV6_SEND_H

#include "route.h"

struct vlan_header {
	__be16 tag;
	__be16 protocol;
};

/* The VLAN tags of an outgoing frame, 0 for none. */
struct tags {
	__u16 outer;
	__u16 inner;
};

static __always_inline struct tags tags_of(const struct adjacency *adjacency)
{
	return (struct tags){adjacency->outer, adjacency->inner};
}

static __always_inline __u32 link_header(struct tags tags)
{
	return ETH_HLEN + (tags.outer ? 4 : 0) + (tags.inner ? 4 : 0);
}

/*
 * Moves the start of layer 3 by `cut` bytes (backward if negative) and leaves room for the link
 * header. Returns 0, or an error with the frame unchanged. Invalidates pointers into the frame.
 */
static __always_inline int cut_head(const struct frame *frame, int cut, struct tags tags)
{
	int delta = (int)frame->l3 + cut - (int)link_header(tags);

	return delta ? bpf_xdp_adjust_head(frame->ctx, delta) : 0;
}

/* Writes the link-layer header at the start of the frame and redirects it. After cut_head(), layer 3 is
 * at offset link_header(tags). */
static __always_inline int send(const struct frame *frame, const struct adjacency *adjacency,
				struct tags tags, __be16 protocol)
{
	void *ethernet = data_of(frame);
	struct vlan_header *vlan = ethernet + ETH_HLEN;
	__u32 slot = adjacency->ifindex & (LIMIT_PORTS - 1);

	if ((void *)(vlan + 2) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	*(__u64 *)ethernet = *(const __u64 *)adjacency->stations;
	*(__u32 *)(ethernet + 8) = load32(adjacency->stations + 8);
	if (!tags.outer) {
		store16(ethernet + 2 * ETH_ALEN, protocol);
		return bpf_redirect_map(&devices, slot, XDP_DROP);
	}
	store16(ethernet + 2 * ETH_ALEN, bpf_htons(tags.inner ? ETH_P_8021AD : ETH_P_8021Q));
	vlan->tag = bpf_htons(tags.outer);
	vlan->protocol = protocol;
	if (tags.inner) {
		vlan->protocol = bpf_htons(ETH_P_8021Q);
		vlan[1].tag = bpf_htons(tags.inner);
		vlan[1].protocol = protocol;
	}
	return bpf_redirect_map(&devices, slot, XDP_DROP);
}

#endif
