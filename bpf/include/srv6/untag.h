/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Tagged frames of the SR domain. Their tags are removed before anything else looks at the frame, so
 * that a SID is reached in them as in untagged frames, and are put back if the kernel gets the frame.
 *
 * untag() returns the number of bytes removed: 0 for all other frames, which are unchanged. `*tags`
 * holds the 8 bytes that followed the MAC addresses. Both functions invalidate pointers into the frame.
 */
#ifndef KAIDO_SRV6_UNTAG_H
#define KAIDO_SRV6_UNTAG_H

#include "send.h"

/* Moves the MAC addresses, which begin at `from`, to `to`. */
static __always_inline void move_stations(void *to, const void *from)
{
	__u64 stations = load64(from);
	__u32 rest = load32(from + 8);

	store64(to, stations);
	store32(to + 8, rest);
}

/* Returns the slot of a VLAN. The VLANs of a port with one tag have different slots. */
static __always_inline __u32 vlan_slot_of(const struct attachment_key *key)
{
	return (key->ifindex * 61 + key->inner * 509 + key->outer) & (LIMIT_VLAN_SLOTS - 1);
}

/* Returns the index of the VLAN interface in the SR domain; 0 if there is none. */
static __always_inline __u32 vlan_of(const struct attachment_key *key)
{
	__u32 at = vlan_slot_of(key);
	const struct vlan_slot *slot = bpf_map_lookup_elem(&vlan_slots, &at);

	if (slot && slot->frames.ifindex == key->ifindex && slot->frames.outer == key->outer &&
	    slot->frames.inner == key->inner)
		return slot->vlan;
	const struct attachment *found = bpf_map_lookup_elem(&attachments, key);

	return found ? found->vlan : 0;
}

/* Returns the port on which the kernel would receive a tagged frame of the SR domain: the VLAN
 * interface, or the port itself for a priority tag (802.1Q, VLAN 0). Null for all other frames.
 * `*length`: of the tags. */
static __always_inline const struct port *port_of_tags(const struct frame *frame, __u32 *length)
{
	const void *ethernet = data_of(frame);
	const struct vlan_header *vlan = ethernet + ETH_HLEN;
	struct attachment_key key = {.ifindex = frame->port->ifindex};
	int is_outer;

	if ((void *)(vlan + 2) > end_of(frame))
		return 0;
	*length = sizeof(*vlan);
	/* The kernel's interfaces for these frames have 802.1Q for one tag, and 802.1ad and 802.1Q
	 * for two. */
	is_outer = ethertype_of(ethernet) == bpf_htons(ETH_P_8021AD);
	key.outer = bpf_ntohs(vlan->tag) & 0xfff;
	if (is_outer) {
		if (vlan->protocol != bpf_htons(ETH_P_8021Q))
			return 0;
		key.inner = bpf_ntohs(vlan[1].tag) & 0xfff;
		*length = 2 * sizeof(*vlan);
		if (!key.outer || !key.inner)
			return 0;
	} else if (!key.outer) {
		/* Frames of a tenant, and other tags behind this one, are handled by headend(). */
		return frame->port->tenant | frame->port->policy || is_vlan(vlan->protocol) ?
			       0 :
			       frame->port;
	}
	if (!(frame->port->flags & PORT_VLANS))
		return 0;
	__u32 ifindex = vlan_of(&key), slot = ifindex & (LIMIT_PORTS - 1);
	const struct port *port = ifindex ? bpf_map_lookup_elem(&ports, &slot) : 0;

	return port && port->ifindex == ifindex ? port : 0;
}

static __always_inline __u32 untag(struct frame *frame, __u64 *tags)
{
	__u32 length = 0;
	const struct port *port = port_of_tags(frame, &length);
	void *ethernet = data_of(frame);

	if (!port || ethernet + ETH_HLEN + sizeof(*tags) > end_of(frame))
		return 0;
	*tags = load64(ethernet + 2 * ETH_ALEN);
	if (length == sizeof(struct vlan_header))
		move_stations(ethernet + 4, ethernet);
	else
		move_stations(ethernet + 8, ethernet);
	/* Cannot fail: an Ethernet header is left. */
	bpf_xdp_adjust_head(frame->ctx, (int)length);
	frame->port = port;
	return length;
}

/* Puts back the first `length` bytes of the tags that untag() has removed, for the kernel. Returns XDP_PASS,
 * or XDP_DROP on invalid bounds. */
static __always_inline int tag_again(struct xdp_md *ctx, __u32 length, __u64 tags)
{
	if (bpf_xdp_adjust_head(ctx, -(int)length))
		return XDP_DROP;
	void *ethernet = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (ethernet + ETH_HLEN + sizeof(tags) > end)
		return XDP_DROP;
	if (length == sizeof(struct vlan_header)) {
		move_stations(ethernet, ethernet + 4);
		store32(ethernet + 2 * ETH_ALEN, (__u32)tags);
	} else {
		move_stations(ethernet, ethernet + 8);
		store64(ethernet + 2 * ETH_ALEN, tags);
	}
	return XDP_PASS;
}

#endif
