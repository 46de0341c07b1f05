/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The one home of map keys and values. User space takes these types from the objects' BTF, so a
 * change here is a change there.
 */
#ifndef KAIDO_ABI_H
#define KAIDO_ABI_H

#include <linux/types.h>

/* The most flows that one node counts; one application has a few, by address family. */
#define METER_FLOWS 1024

/* The most applications that one node counts. */
#define METER_SLOTS 512

/* A match on every DSCP: no code point has this value. */
#define METER_ANY_DSCP 0xff

/* A flow to count. A packet matches when every part does. */
struct meter_flow {
	__be32 src[4];      /* already masked; IPv4 in the first word */
	__be32 src_mask[4];
	__be32 dst[4];
	__be32 dst_mask[4];
	__u16 src_port_first; /* host byte order; 0 to 65535 for every port */
	__u16 src_port_last;
	__u16 dst_port_first;
	__u16 dst_port_last;
	__u16 slot;         /* the counter: below METER_SLOTS */
	__u8 version;       /* 4 or 6; 0 ends the list */
	__u8 protocol;      /* 0 for every protocol */
	__u8 dscp;          /* METER_ANY_DSCP for every code point */
	__u8 pad[3];
};
_Static_assert(sizeof(struct meter_flow) == 80, "no hidden padding");

/* What was counted. */
struct meter_count {
	__u64 packets; /* as on the wire: a GSO super-frame counts as its segments */
	__u64 bytes;   /* layer-2 bytes as on the wire, each segment's headers included */
};
_Static_assert(sizeof(struct meter_count) == 16, "no hidden padding");

/*
 * The SRv6 data plane. VLAN tags are in host byte order, 0 for none; lengths in bytes. A zeroed
 * entry means nothing. IPv6 addresses are pairs of words that hold the bytes as the wire has them:
 * one load each, where four of half the size would have to be put together again.
 */

enum limit {
	/* Ports, found by the low bits of their interface index: two that share them are refused.
	 * A power of two. */
	LIMIT_PORTS = 16384,
	/* How many routes a processor remembers: two to the power of this. */
	LIMIT_ADJACENCY_BITS = 15,
	/* How many SIDs and how many policies it remembers by address: the same. */
	LIMIT_FOUND_BITS = 15,
	/* How many neighbours may be waited for at a time; of others the next packet tells. A power of
	 * two. */
	LIMIT_MISSING = 64,
	/* The longest outer header: IPv6 and an SRH of ten segments. With its link header it fills
	 * the 216 bytes by which XDP lets a frame on a veth grow; other drivers give as much. */
	LIMIT_OUTER = 208,
	/* Over how many places a policy with several lists spreads its flows. A power of two. */
	LIMIT_SPREAD = 64,
	/* Sets of `passages`, where there are service functions. A power of two. */
	LIMIT_PASSAGES = 16384,
	/* Packets that are with the functions behind one interface (End.AD). A power of two. Without a
	 * link-layer tag, what such a function makes itself is taken for another's packet in at most so
	 * many of 2^32 cases: see end_ad.h. */
	LIMIT_PROXIED = 8192,
	/* How long one may be there, in ticks of 2^20 ns: 4.3 s. */
	LIMIT_PROXIED_TICKS = 4096,
	LIMIT_PROXIED_TICK_BITS = 20,
	/* How long a generation lasts that nobody watches over. */
	LIMIT_TICK_NS = 100000000,
	/* The first counters are the reasons': left to the kernel, then dropped. */
	LIMIT_REASONS = 64,
};

/* Distinct prefix lengths: an address's bits and the default route. */
#define LENGTHS4 33
#define LENGTHS6 129

/* Why a packet was not forwarded by the program. Each is counted twice: left to the kernel, which
 * decides what becomes of it, and dropped, where the kernel has no such entry and would let the
 * packet escape. */
enum reason {
	/* No entry concerns the packet: most of what a server receives for itself. */
	REASON_NO_ENTRY,
	/* The frame is for another link-layer address, or for many. */
	REASON_OTHER_STATION,
	/* An extension header that is no segment routing header. */
	REASON_EXTENSION,
	/* The segment routing header has TLVs; the kernel verifies an HMAC. */
	REASON_TLV,
	/* No segment routing header where one is needed: OAM to a SID (RFC 9259). */
	REASON_NO_SRH,
	/* No segment is left, and the SID has no flavour for that. */
	REASON_LAST_SEGMENT,
	/* The packet may pass no further router: the kernel answers. */
	REASON_HOP_LIMIT,
	/* Larger than the route takes: the kernel answers. */
	REASON_TOO_BIG,
	/* No route, one to this node itself, or one that the kernel alone can follow. */
	REASON_NO_ROUTE,
	/* The next hop's link-layer address is not known yet. */
	REASON_NO_NEIGHBOUR,
	/* The way leads by an interface that is not one of the data plane's, or is gone. */
	REASON_OTHER_PORT,
	/* The frame has no room for the outer header. */
	REASON_NO_HEADROOM,
	/* A header needs more than forwarding: options, a special address, a bad checksum. */
	REASON_IRREGULAR,
	/* The tenant has no policy for the destination. */
	REASON_NO_POLICY,
	/* A segment routing header that contradicts itself (RFC 8754 section 2). */
	REASON_MALFORMED,
	/* The packet is shorter than its headers say. */
	REASON_TRUNCATED,
	/* The SID decapsulates another kind of packet. */
	REASON_WRONG_PAYLOAD,
	/* Larger than the route takes with an outer header: the sender was told. */
	REASON_TOO_BIG_TOLD,
	/* A service function gave back a packet whose outer header is not there any more: too many came
	 * meanwhile. */
	REASON_STATE_LOST,
	/* What this node itself says to an inner packet of a service function, without a way back; and what
	 * it, or another one through it, sends where only such packets leave. */
	REASON_LOCAL_ANSWER,
	/* The interface to a service function, or the one back, is down or not there. */
	REASON_FUNCTION_DOWN,
	/* The kernel requires an HMAC on this port (seg6_require_hmac), and the SRH has none. */
	REASON_NO_HMAC,
	/* To a SID, by a port where the SR domain ends (RFC 8754 section 5.1). */
	REASON_EDGE,
	/* To a SID, from a source outside of the SR domain; or by a port where the domain ends, from one
	 * inside. */
	REASON_FOREIGN_SOURCE,
	/* A tenant's, from a source that is not the tenant's. */
	REASON_TENANT_SOURCE,
	REASONS,
};

_Static_assert(REASONS * 2 <= LIMIT_REASONS, "room for every reason twice");

/* What was counted, by one processor. */
struct count {
	__u64 packets;
	__u64 bytes; /* of layer 3, as the packet came */
};
_Static_assert(sizeof(struct count) == 16, "no hidden padding");

/* With a tenant's number, in ports and attachments. */
enum tenant_flag {
	/* There are `sources` of the tenant's. */
	TENANT_SOURCES = 1 << 30,
};

/* Prefixes that packets may come from. */
struct source {
	__u32 length; /* of all that follows, in bits: 32 and those of the address */
	__u32 owner;  /* the tenant, FOUND_IPV6 with it for IPv6; FOUND_IPV6 alone: of packets to SIDs */
	__u64 address[2]; /* IPv4 in the first 4 bytes, the others zero */
};
_Static_assert(sizeof(struct source) == 24, "no hidden padding");

/* Bits of a port. */
enum port_flag {
	/* This node's SIDs are not reachable from here: the kernel looks in the tenant's table. */
	PORT_TENANT = 1,
	/* The kernel requires an HMAC of each SRH (seg6_require_hmac). */
	PORT_HMAC = 2,
	/* The SR domain ends here: packets to SIDs are dropped. */
	PORT_EDGE = 4,
	/* There are `sources` of packets to SIDs. */
	PORT_SOURCES = 8,
};

/* An interface that the program is attached to or may send by. */
struct port {
	__u32 ifindex;
	__u8 mac[6];
	__u16 flags;  /* PORT_* */
	__u32 tenant; /* of frames without a tag, TENANT_SOURCES with it; 0 for none */
	__u32 policy; /* of frames without a tag, for H.Encaps.L2; 0 for none */
	__u32 tagged; /* whether an attachment may exist for tagged frames */
};
_Static_assert(sizeof(struct port) == 24, "no hidden padding");

/* Tagged frames of a port (802.1Q, 802.1ad). */
struct attachment_key {
	__u32 ifindex;
	__u16 outer;
	__u16 inner;
};
_Static_assert(sizeof(struct attachment_key) == 8, "no hidden padding");

/* To whom they belong. */
struct attachment {
	__u32 tenant; /* TENANT_SOURCES with it; 0 for none */
	__u32 policy; /* for H.Encaps.L2; 0 for none */
};
_Static_assert(sizeof(struct attachment) == 8, "no hidden padding");

/* The lengths of a table's prefixes, longest first: each is one look-up. */
struct lengths4 {
	__u8 count;
	__u8 length[LENGTHS4];
};
_Static_assert(sizeof(struct lengths4) == 34, "no hidden padding");

struct lengths6 {
	__u8 count;
	__u8 length[LENGTHS6];
};
_Static_assert(sizeof(struct lengths6) == 130, "no hidden padding");

/* A tenant's own address space: its prefixes' lengths, twice, since what packets read meanwhile
 * cannot be written. */
struct tenant {
	struct lengths4 ipv4[2];
	struct lengths6 ipv6[2];
	__u32 active; /* 0 or 1 */
};
_Static_assert(sizeof(struct tenant) == 332, "no hidden padding");

/*
 * An index finds a record's number by a hash of its key: two buckets come into question, each one
 * cache line, and the tag in front of a number spares most of the looks at other records. User
 * space puts a new record where more room is. Records are written before an index leads to them,
 * and used for another key only when no packet can be on the way to them any more.
 */
enum index {
	/* What one bucket holds. */
	INDEX_ENTRIES = 8,
};

struct bucket {
	__u16 tag[INDEX_ENTRIES]; /* 0 for a free place */
	__u32 record[INDEX_ENTRIES];
	__u8 pad[16];
};
_Static_assert(sizeof(struct bucket) == 64, "one cache line");

/* A prefix within a tenant, and its policy. The address is masked. */
struct prefix4 {
	__be32 address;
	__u32 tenant;
	__u32 length;
	__u32 policy;
};
_Static_assert(sizeof(struct prefix4) == 16, "no hidden padding");

struct prefix6 {
	__u64 address[2];
	__u32 tenant;
	__u32 length;
	__u32 policy;
	__u32 pad;
};
_Static_assert(sizeof(struct prefix6) == 32, "no hidden padding");

/* What the packets of a prefix meet (RFC 9256): one list, or several by the flow's hash. A policy is
 * one tenant's. */
struct policy {
	__u32 list;    /* the outer header; 0 for none yet */
	__u32 spread;  /* if not 0, the weighted lists instead */
	__u32 counter;
	__u32 in_kernel; /* whether the kernel has this policy too */
};
_Static_assert(sizeof(struct policy) == 16, "no hidden padding");

struct spread {
	__u32 list[LIMIT_SPREAD];
};
_Static_assert(sizeof(struct spread) == 256, "no hidden padding");

/* A segment list, as the outer header that it becomes (RFC 8986 section 5): IPv6, then the SRH if
 * there is one. The payload length, the flow label, the hop limit and the next header are those of
 * no packet yet: zero. */
struct outer {
	__u16 length;    /* of the header below; 0 for none */
	__u8 has_srh;
	__u8 pad[5];
	__u8 header[LIMIT_OUTER];
	__u8 rest[40];
};
_Static_assert(sizeof(struct outer) == 256, "whole cache lines: a list of one needs but the first");

/* An endpoint behaviour (RFC 8986 section 4). */
enum behaviour {
	BEHAVIOUR_NONE,
	BEHAVIOUR_END,
	BEHAVIOUR_END_X,
	BEHAVIOUR_END_T,
	BEHAVIOUR_END_DX2,
	BEHAVIOUR_END_DX4,
	BEHAVIOUR_END_DX6,
	BEHAVIOUR_END_DT4,
	BEHAVIOUR_END_DT6,
	BEHAVIOUR_END_DT46,
	BEHAVIOUR_END_B6_ENCAPS,
	BEHAVIOUR_END_AN_NF,
	BEHAVIOUR_END_AS,
	BEHAVIOUR_END_AD,
	BEHAVIOUR_END_AM,
	BEHAVIOURS,
};

/* Bits of a SID: its flavours (RFC 8986 section 4.16, RFC 9800 section 4.1), and whether the kernel
 * has this SID too. */
enum sid_flag {
	SID_PSP = 1,
	SID_USP = 2,
	SID_USD = 4,
	SID_NEXT_CSID = 8,
	SID_IN_KERNEL = 16,
};

/* A SID and its behaviour. SIDs are prefixes: mostly of 128 bits; less where an argument follows.
 * The address is masked. */
struct sid {
	__u64 address[2];
	/* X, DX4 (first 4 bytes), DX6: the next hop; zero for the packet's own destination.
	 * T, DT4, DT6, DT46: the routing table, or zero and then the VRF to look up in.
	 * DX2: the interface to send by. B6.Encaps: the policy.
	 * AN.NF: the counter of what has come back from netfilter, and the way back of this node's own
	 * answers, 0 for none.
	 * AS, AD, AM: the counter of what has come back, and the proxy. */
	__u64 target[2];
	__u32 version; /* the control's when the counter became this SID's */
	__u32 counter;
	__u8 behaviour;
	__u8 flags;
	__u8 csid;   /* of NEXT-C-SID: the locator block's bytes times 16, the node's and function's */
	__u8 length; /* of the prefix, in bits */
	__u16 outer; /* tags to put on what is decapsulated */
	__u16 inner;
};
_Static_assert(sizeof(struct sid) == 48, "no hidden padding");

/* The SID that was found for an address, by one processor. */
struct found_sid {
	struct sid sid; /* with the whole address, and the control's version when it was found */
	/* If the SID's length is 128, what its counter in this processor's row is to become when
	 * another SID takes the place; otherwise, and for End.B6.Encaps, the counter itself counts. */
	struct count count;
};
/* Ten thousand of two lines each were more than a second-level cache of 1 MiB. */
_Static_assert(sizeof(struct found_sid) == 64, "one cache line");

/* With a tenant's number: that an address is one of IPv6. */
#define FOUND_IPV6 (1u << 31)

/* The policy that was found for a tenant's destination. */
struct found_policy {
	__u64 address[2]; /* IPv4 in the first 4 bytes, the others zero */
	__u32 owner;      /* the tenant; FOUND_IPV6 with it for IPv6 */
	__u32 version;    /* the control's */
	__u32 policy;
	__u32 pad;
};
_Static_assert(sizeof(struct found_policy) == 32, "two in a cache line");

/* An interface above a port, such as a VLAN's: packets routed to it leave by the port, tagged. */
struct upper {
	__u32 ifindex;
	__u16 outer;
	__u16 inner;
};
_Static_assert(sizeof(struct upper) == 8, "no hidden padding");

/* What a route look-up depends on. Whole words, so that comparing needs no partial ones. */
struct route_key {
	__u64 dst[2]; /* IPv4 in the first 4 bytes, the others zero */
	__u64 src[2];
	__u64 flow;  /* ROUTE_FLOW: what else chooses among rules and among equal paths */
	__u64 table; /* ROUTE_TABLE: which table, by which rules */
};
_Static_assert(sizeof(struct route_key) == 48, "no hidden padding");

/* Where a packet goes, as the kernel's tables say. One processor's; nobody else reads or writes
 * it. */
struct adjacency {
	struct route_key key;
	__u32 generation; /* valid while it is the control's */
	__u32 ifindex;    /* the port to send by */
	__u8 stations[12]; /* link-layer addresses: the next hop's, then the port's */
	__u16 mtu;
	__u16 outer;
	__u16 inner;
	__u8 pad[6];
};
_Static_assert(sizeof(struct adjacency) == 80, "no hidden padding");

/* A neighbour that a packet waited for in vain. The daemon has it asked for, and clears the entry. */
struct missing {
	__u64 address[2]; /* IPv4 in the first 4 bytes */
	__u32 ifindex;    /* 0 for none */
	__u32 ipv6;
};
_Static_assert(sizeof(struct missing) == 24, "no hidden padding");

/*
 * The outer header of a packet that is with a service function (netfilter), with one segment less,
 * and what else it needs to go on. Each processor has a ring of these: one is used again when as
 * many others have come as the ring has slots. Packets that the function cuts, puts together or
 * sends twice share one.
 */
struct slot {
	__u8 tag[6];      /* of the packet: the processor's number in 12 bits, 36 of a counter */
	__u8 length;      /* of the outer header; 0 while it is written */
	__u8 flags;       /* SLOT_* */
	__u32 generation; /* `ifindex` and `ethernet` are right while it is the control's; 0: never */
	__u32 ifindex;    /* the port to send by */
	__u32 mark;       /* the SID's argument; End.AD: when the packet came, in 2^20 ns */
	__u32 counter;    /* of what comes back */
	__u32 port;       /* where the packet came in */
	__u8 station[6];  /* whom it came from */
	__u8 ethernet[14];
	__u8 header[LIMIT_OUTER];
};
_Static_assert(sizeof(struct slot) == 256, "whole cache lines");

/* Where rules drop a service function's packet, on its way. */
enum hook {
	HOOK_PREROUTING,
	HOOK_FORWARD,
	HOOK_POSTROUTING,
	NO_HOOK, /* the kernel did, for a reason of its own */
	HOOKS,
};

/* What a service function has dropped, by one processor. */
struct drops {
	__u64 packets[HOOKS];
};

enum slot_flag {
	SLOT_IPV6 = 1,   /* the inner packet is one of IPv6 */
	SLOT_RAISED = 2, /* its hop limit was raised by one: the kernel takes one off */
	SLOT_AGAIN = 4,  /* the next segment is this node's own */
	SLOT_ROUTED = 8, /* End.AD: the tag comes back as the packet's hash, and not in the frame */
};

/*
 * Between which addresses inner packets have gone into netfilter lately: what this node itself says
 * to one of them must not leave in the clear. Each pair is in one set, which is one cache line.
 */
#define PASSAGE_PLACES 7

struct passages {
	/* A pair each; 0 for a free place. See passage.h. */
	__u64 place[PASSAGE_PLACES];
	/* When one last found no place. */
	__u32 full;
	__u32 pad;
};
_Static_assert(sizeof(struct passages) == 64, "one cache line");

/* The places of `function_devices`. */
enum function_device {
	DEVICE_NETFILTER,
	DEVICE_PROXIES,
	DEVICES,
};

/* The way of a SID's packets to its service function (End.AS, End.AD, End.AM), and what they need
 * back. */
struct proxy {
	__u64 via[2];   /* the function's address; IPv4 in the first 4 bytes */
	__u32 to;       /* the interface that packets are sent by; 0 while it is down or not there */
	__u32 ring;     /* AD: of slots, one for each interface back */
	__u32 policy;   /* AS: the outer headers */
	__u32 counter;  /* of what comes back */
	__u32 port;     /* AS, AM: where packets count as having come in */
	__u8 station[6]; /* of `to` */
	__u8 family;    /* of `via`; 0 for none: the function takes what is to anybody */
	__u8 behaviour;
	__u32 back;     /* the interface that packets come back by */
};
_Static_assert(sizeof(struct proxy) == 48, "no hidden padding");

/* What comes in by an interface that leads to service functions. With neither of the two nothing is to
 * come back there. */
struct back {
	__u32 ring;  /* AD: the ring that its slots are in, plus one; 0 for none */
	__u32 proxy; /* AS, AM: whose packets these are; 0 for none */
};
_Static_assert(sizeof(struct back) == 8, "no hidden padding");

/* What the daemon tells every packet. */
struct control {
	/* All ones if a packet's way may depend on more than its destination, and on where it came in:
	 * on a rule, a source, a class, or on its flow, where a route has several next hops. Else 0. */
	__u64 exact;
	/* Adjacencies of another generation are looked up anew. It changes with every route, rule,
	 * neighbour and link; if nobody watches those, LIMIT_TICK_NS after LIMIT_TICK_NS. Never 0. */
	__u32 generation;
	/* What was found for an address under another version of SIDs, prefixes and policies is looked
	 * for anew. Never 0. */
	__u32 version;
	/* Counts up while somebody watches. */
	__u32 heartbeat;
	/* Counters in each processor's row. */
	__u32 counters;
	/* The indexes' numbers of buckets, less one: powers of two. */
	__u32 sid_buckets;
	__u32 prefix4_buckets;
	__u32 prefix6_buckets;
	/* Which of the two below. */
	__u32 active;
	/* Slots in each processor's ring, less one: a power of two. */
	__u32 slots;
	/* Two ends of a veth: inner packets enter the kernel by the one, and leave it by the other. */
	__u32 function_in;
	__u32 function_out;
	/* In front of a tag where it is a time, so that no time is taken for one. */
	__u32 magic;
	/* The lengths of the SIDs' prefixes. */
	struct lengths6 sids[2];
	/* Sets of passages, less one: a power of two. */
	__u32 passages;
	/* What time it is for passages: in ticks of 2^30 ns, and written every LIMIT_TICK_NS. Never 0. */
	__u32 passage_time;
	/* Two ends of another veth: inner packets of proxies come in by the one, from XDP, and what goes on
	 * to another SID of this node is sent into the other. */
	__u32 proxy_in;
	__u32 proxy_out;
	/* A random number of this program alone: another one's proxies have other numbers. */
	__u32 program;
};
_Static_assert(sizeof(struct control) == 336, "no hidden padding");

/* Addresses of a family, as the wire has them; IPv4 in the first 4 bytes. */
struct trace_prefix {
	__u64 address[2];
	__u64 mask[2];
};

/* Which packets are traced. */
struct trace_filter {
	struct trace_prefix source;
	struct trace_prefix destination;
	__u32 ifindex; /* where they come in; 0 for all */
	__s32 left;    /* how many are still to be traced */
	__u16 vlan;    /* their outer tag; 0 for all */
	__u8 family;   /* 4 or 6; 0 for all, and then no address counts */
	__u8 pad[5];
};
_Static_assert(sizeof(struct trace_filter) == 80, "no hidden padding");

/* A packet that was traced, as it came. */
struct traced_packet {
	__u64 at_ns; /* the monotonic clock */
	__u32 ifindex;
	__u32 length; /* of the whole frame; what is behind `bytes` is left out */
	__u8 bytes[2032];
};
_Static_assert(sizeof(struct traced_packet) == 2048, "a power of two");

#endif
