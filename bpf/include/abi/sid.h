/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* SIDs and their endpoint behaviors. */
#ifndef KAIDO_ABI_SID_H
#define KAIDO_ABI_SID_H

#include <linux/types.h>
#include "counters.h"

/* Endpoint behaviors (RFC 8986 section 4, RFC 9433 section 6). End.M.GTP6.D.Di is End.M.GTP6.D with
 * another policy. */
enum behavior {
	BEHAVIOR_NONE,
	BEHAVIOR_END,
	BEHAVIOR_END_X,
	BEHAVIOR_END_T,
	BEHAVIOR_END_DX2,
	BEHAVIOR_END_DX2V,
	BEHAVIOR_END_DX4,
	BEHAVIOR_END_DX6,
	BEHAVIOR_END_DT4,
	BEHAVIOR_END_DT6,
	BEHAVIOR_END_DT46,
	BEHAVIOR_END_B6_ENCAPS,
	BEHAVIOR_END_AN_NF,
	BEHAVIOR_END_AS,
	BEHAVIOR_END_AD,
	BEHAVIOR_END_AM,
	BEHAVIOR_END_M_GTP4_E,
	BEHAVIOR_END_M_GTP6_D,
	BEHAVIOR_END_M_GTP6_E,
	BEHAVIOR_END_B6_INSERT,
};

/* Flags of a SID: its flavors (RFC 8986 section 4.16, RFC 9800 section 4), its presence in the kernel,
 * and the header that End.M.GTP4.E and End.M.GTP6.E write: with a PDU Session Container, and for which
 * direction. */
enum sid_flag {
	SID_PSP = 1,
	SID_USD = 4,
	SID_NEXT_CSID = 8,
	SID_IN_KERNEL = 16,
	SID_REPLACE_CSID = 32,
	SID_PDU_SESSION = 64,
	SID_UPLINK = 128,
};

/* The routing table of a lookup. */
struct sid_table {
	__u32 number; /* 0: that of the VRF */
	__u32 vrf;    /* the interface; 0 for none */
};

/* An entry of an L2 table (RFC 8986 section 4.10). */
struct sid_vlan {
	__u16 vlan; /* 0 for a free entry */
	__u16 port; /* low bits of the interface's index, as in `ports` */
};

/* The way back from netfilter. */
struct sid_netfilter {
	__u32 returned; /* counter of packets that return */
	__u32 answers;  /* return policy for local replies; 0 for none */
};

/* The way to a service function behind an interface. */
struct sid_proxy {
	__u32 returned; /* counter of packets that return */
	__u32 number;   /* of the proxy */
};

/* The end of a GTP-U tunnel. */
struct sid_gtp {
	struct sid_table table; /* of the packets in the tunnel */
	__u32 source_at;        /* M.GTP4.E: position of the IPv4 source in the IPv6 source, in bits */
};

/* Parameters of a behavior, which selects the member; not the ARG of a SID (RFC 8986 section
 * 3.1). */
union sid_params {
	__u64 next_hop6[2];             /* X, DX6: zero for the packet's own destination */
	__be32 next_hop4;               /* DX4: zero for the packet's own destination */
	struct sid_table table;         /* T, DT4, DT6, DT46 */
	__u32 port;                     /* DX2: the egress interface */
	struct sid_vlan vlans[4];       /* DX2V */
	__u32 policy;                   /* B6.Encaps, B6.Insert, M.GTP6.D */
	struct sid_gtp gtp;             /* M.GTP4.E, M.GTP6.E */
	struct sid_netfilter netfilter; /* AN.NF */
	struct sid_proxy proxy;         /* AS, AD, AM */
	__u64 words[2];                 /* the whole, for copies */
};

/* A SID and its behavior. A SID is a prefix, usually of 128 bits, shorter if it has an ARG.
 * The address is masked. */
struct sid {
	__u64 address[2];
	union sid_params params;
	__u32 version; /* version of `control` at which the counter was assigned to this SID */
	__u32 counter;
	__u8 behavior;
	__u8 flags;
	__u8 csid;   /* NEXT-C-SID and REPLACE-C-SID: locator block length in bytes times 16, plus
		      * node and function length */
	__u8 length; /* prefix length in bits */
	__u16 outer; /* VLAN tags to push after decapsulation */
	__u16 inner;
};
_Static_assert(sizeof(struct sid) == 48, "no hidden padding");

/* An entry of a CPU's SID cache, which is indexed by address. */
struct found_sid {
	struct sid sid; /* with the full address, and the version of `control` at lookup time */
	/* If the SID's length is 128, the value that is flushed into the SID's counter of this CPU
	 * when the entry is evicted. For other SIDs and for End.B6.Encaps (encapsulate.h), the
	 * counter itself is updated. */
	struct count count;
};
/* With two cache lines each, ten thousand entries would exceed a second-level cache of 1 MiB. */
_Static_assert(sizeof(struct found_sid) == 64, "one cache line");

#endif
