/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Ports, their tagged frames and interfaces, and sources that are permitted on them. */
#ifndef KAIDO_ABI_PORTS_H
#define KAIDO_ABI_PORTS_H

#include <linux/types.h>

/* Flags in the tenant number of ports and attachments. */
enum tenant_flag {
	/* The tenant has entries in `sources`. */
	TENANT_SOURCES = 1 << 30,
	/* `sources` has entries of the SR domain. The tenant is outside of it and has no entries
	 * of its own. */
	TENANT_OUTSIDE = 1 << 29,
};

/* A prefix of permitted source addresses. */
struct source {
	__u32 length; /* of the fields below, in bits: 32 plus the prefix length */
	__u32 owner;  /* the tenant, plus OWNER_IPV6 for IPv6; OWNER_IPV6 alone for packets to
		       * SIDs */
	__u64 address[2]; /* IPv4 in the first 4 bytes, the rest zero */
};
_Static_assert(sizeof(struct source) == 24, "no hidden padding");

/* Flags of a port. */
enum port_flag {
	/* SIDs are not reachable from this port: the kernel looks up in the tenant's table. */
	PORT_CLOSED = 1,
	/* The kernel requires an HMAC in each SRH (seg6_require_hmac). */
	PORT_HMAC = 2,
	/* The SR domain ends here: packets to SIDs are dropped. */
	PORT_EDGE = 4,
	/* `sources` has entries for packets to SIDs. */
	PORT_SOURCES = 8,
	/* The port has VLANs in the SR domain. */
	PORT_VLANS = 16,
	/* netfilter drops packets of this port that port_in has not marked. */
	PORT_GUARDED = 32,
};

/* An interface that the program is attached to or may send on, or a VLAN interface in the SR domain. */
struct port {
	__u32 ifindex;
	__u8 mac[6];
	__u16 flags;  /* PORT_* */
	__u32 tenant; /* of untagged frames, plus TENANT_*; 0 for none */
	__u32 policy; /* of untagged frames, for H.Encaps.L2; 0 for none */
	__u32 tagged; /* nonzero if tenants may own tagged frames */
};
_Static_assert(sizeof(struct port) == 24, "no hidden padding");

/* Tagged frames of a port (802.1Q, 802.1ad). */
struct attachment_key {
	__u32 ifindex;
	__u16 outer;
	__u16 inner;
};
_Static_assert(sizeof(struct attachment_key) == 8, "no hidden padding");

/* A VLAN in the SR domain, in a slot computed from its port and tags (vlan_slot_of). It saves the lookup in
 * `attachments`: 20 ns (bench dataplane). Of several VLANs with the same slot, one has it. */
struct vlan_slot {
	struct attachment_key frames;
	__u32 vlan; /* index of the VLAN interface; 0 for a free slot */
};
_Static_assert(sizeof(struct vlan_slot) == 12, "no hidden padding");

/* The tenant or policy of these frames, or the VLAN interface in the SR domain that receives them. */
struct attachment {
	__u32 tenant; /* plus TENANT_*; 0 for none */
	__u32 policy; /* for H.Encaps.L2; 0 for none */
	__u32 vlan;   /* index of the VLAN interface, which has an entry in `ports`; 0 for none */
	/* MAC addresses of the VLAN interfaces that receive these frames. The kernel accepts a
	 * frame to any of them, and to the port's. There are at most four: one of 802.1Q and one of
	 * 802.1ad for the outer tag, and one for the inner tag on each of them. */
	__u8 macs[4][6];
};
_Static_assert(sizeof(struct attachment) == 36, "no hidden padding");

/* An interface stacked on a port, such as a VLAN interface: packets routed to it leave through the port,
 * tagged. */
struct upper {
	__u32 ifindex;
	__u16 outer;
	__u16 inner;
};
_Static_assert(sizeof(struct upper) == 8, "no hidden padding");

#endif
