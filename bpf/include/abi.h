/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The single definition of map keys, map values and events. User space reads these types from the
 * BTF of the objects, so it follows every change made here.
 */
#ifndef KAIDO_ABI_H
#define KAIDO_ABI_H

#include <linux/types.h>

/* Maximum number of flows that one node counts. One application has a few, separated by address
 * family. */
#define METER_FLOWS 1024

/* Maximum number of applications that one node counts. */
#define METER_SLOTS 512

/* Matches every DSCP. No code point has this value. */
#define METER_ANY_DSCP 0xff

/* A flow to count. A packet matches if all fields match. */
struct meter_flow {
	__be32 src[4];      /* masked; IPv4 in the first word */
	__be32 src_mask[4];
	__be32 dst[4];
	__be32 dst_mask[4];
	__u16 src_port_first; /* host byte order; 0 to 65535 matches every port */
	__u16 src_port_last;
	__u16 dst_port_first;
	__u16 dst_port_last;
	__u16 slot;         /* counter index, below METER_SLOTS */
	__u8 version;       /* 4 or 6; 0 marks the end of the list */
	__u8 protocol;      /* 0 matches every protocol */
	__u8 dscp;          /* METER_ANY_DSCP matches every code point */
	__u8 pad[3];
};
_Static_assert(sizeof(struct meter_flow) == 80, "no hidden padding");

/* Packet and byte count of an application. */
struct meter_count {
	__u64 packets; /* on the wire: a GSO super-frame counts as its segments */
	__u64 bytes;   /* layer 2 on the wire, including the headers of each segment */
};
_Static_assert(sizeof(struct meter_count) == 16, "no hidden padding");

/*
 * The SRv6 data plane.
 *
 * VLAN tags are in host byte order, 0 for none. Lengths are in bytes. A zeroed entry is empty. IPv6
 * addresses are pairs of 64-bit words in wire byte order: each word needs a single load, without
 * assembly from two 32-bit halves.
 */

enum limit {
	/* Number of port slots. The low bits of the interface index select the slot; two interfaces
	 * that share a slot are refused. A power of two. */
	LIMIT_PORTS = 16384,
	/* Log2 of the number of adjacencies that each CPU caches. */
	LIMIT_ADJACENCY_BITS = 15,
	/* Log2 of the number of SIDs, and of policies, that each CPU caches by address. */
	LIMIT_FOUND_BITS = 15,
	/* Number of neighbours that can await resolution at a time. Others are reported by their
	 * next packet. A power of two. */
	LIMIT_MISSING = 64,
	/* Longest outer header: IPv6 and an SRH of ten segments. With its link header it uses
	 * the 216 bytes by which XDP can grow a frame on a veth. Other drivers provide at least
	 * that. */
	LIMIT_OUTER = 208,
	/* Number of slots among which a policy with several segment lists distributes its flows. A
	 * power of two. */
	LIMIT_SPREAD = 64,
	/* Number of sets in `passages` if service functions are configured. A power of two. */
	LIMIT_PASSAGES = 16384,
	/* Number of packets in flight in the functions reached through one interface (End.AD). A
	 * power of two. Without a link-layer tag, a packet originated by such a function is
	 * mistaken for a returning one with probability at most LIMIT_PROXIED / 2^32: see
	 * end_ad.h. */
	LIMIT_PROXIED = 8192,
	/* Lifetime of such a packet, in ticks of 2^20 ns: 4.3 s. */
	LIMIT_PROXIED_TICKS = 4096,
	LIMIT_PROXIED_TICK_BITS = 20,
	/* Lifetime of a generation while the daemon does not run. */
	LIMIT_TICK_NS = 100000000,
	/* The first counters are those of the reasons: left to the kernel, then dropped. */
	LIMIT_REASONS = 64,
};

/* Number of distinct prefix lengths: the bits of an address, and the default route. */
#define LENGTHS4 33
#define LENGTHS6 129

/* The reason why the program did not forward a packet. Each reason has two counters: one for
 * packets left to the kernel, which then decides, and one for packets dropped because the kernel
 * lacks the entry and would leak the packet. */
enum reason {
	/* No entry matches. Most packets addressed to the host itself have this reason. */
	REASON_NO_ENTRY,
	/* The destination MAC address is a group address or that of another station. */
	REASON_OTHER_STATION,
	/* An extension header other than a segment routing header. */
	REASON_EXTENSION,
	/* The segment routing header has TLVs. The kernel verifies the HMAC. */
	REASON_TLV,
	/* The segment routing header is missing: OAM to a SID (RFC 9259). */
	REASON_NO_SRH,
	/* Segments Left is 0 and the SID has no flavor that handles this. */
	REASON_LAST_SEGMENT,
	/* Hop limit exceeded. The kernel sends the ICMP error. */
	REASON_HOP_LIMIT,
	/* Larger than the route's MTU. The kernel sends the ICMP error. */
	REASON_TOO_BIG,
	/* No route, a local route, or a route that only the kernel can follow. */
	REASON_NO_ROUTE,
	/* The link-layer address of the next hop is not resolved yet. */
	REASON_NO_NEIGHBOUR,
	/* The egress interface is not a port of the data plane, or no longer exists. */
	REASON_OTHER_PORT,
	/* The frame has no headroom for the outer header. */
	REASON_NO_HEADROOM,
	/* A header needs more than forwarding: options, a special address, a bad checksum. */
	REASON_IRREGULAR,
	/* The tenant has no policy for the destination. */
	REASON_NO_POLICY,
	/* Inconsistent segment routing header (RFC 8754 section 2). */
	REASON_MALFORMED,
	/* The packet is shorter than its headers indicate. */
	REASON_TRUNCATED,
	/* The SID decapsulates another type of payload. */
	REASON_WRONG_PAYLOAD,
	/* Larger than the route's MTU with an outer header. The program notified the sender. */
	REASON_TOO_BIG_TOLD,
	/* A service function returned a packet too late: later packets have overwritten its outer
	 * header. */
	REASON_STATE_LOST,
	/* A local reply to the inner packet of a service function that has no return policy; or any
	 * packet that this node sends, or that another node sends through it, by an interface
	 * reserved for such inner packets. */
	REASON_LOCAL_ANSWER,
	/* The interface to a service function, or the return interface, is down or missing. */
	REASON_FUNCTION_DOWN,
	/* The kernel requires an HMAC on this port (seg6_require_hmac), and the SRH has none. */
	REASON_NO_HMAC,
	/* Addressed to a SID, received on a port at the edge of the SR domain (RFC 8754 section
	 * 5.1). */
	REASON_EDGE,
	/* Addressed to a SID, with a source outside the SR domain; or received on a port at the
	 * edge of the domain or from a tenant, with a source inside the domain. */
	REASON_FOREIGN_SOURCE,
	/* A tenant's packet with a source that does not belong to the tenant. */
	REASON_TENANT_SOURCE,
	REASONS,
};

_Static_assert(REASONS * 2 <= LIMIT_REASONS, "room for every reason twice");

/* Packet and byte count of one CPU. */
struct count {
	__u64 packets;
	__u64 bytes; /* layer 3, as received */
};
_Static_assert(sizeof(struct count) == 16, "no hidden padding");

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
	__u32 owner;  /* the tenant, plus FOUND_IPV6 for IPv6; FOUND_IPV6 alone for packets to
		       * SIDs */
	__u64 address[2]; /* IPv4 in the first 4 bytes, the rest zero */
};
_Static_assert(sizeof(struct source) == 24, "no hidden padding");

/* Flags of a port. */
enum port_flag {
	/* SIDs are not reachable from this port: the kernel looks up in the tenant's table. */
	PORT_TENANT = 1,
	/* The kernel requires an HMAC in each SRH (seg6_require_hmac). */
	PORT_HMAC = 2,
	/* The SR domain ends here: packets to SIDs are dropped. */
	PORT_EDGE = 4,
	/* `sources` has entries for packets to SIDs. */
	PORT_SOURCES = 8,
};

/* An interface that the program is attached to or may send on. */
struct port {
	__u32 ifindex;
	__u8 mac[6];
	__u16 flags;  /* PORT_* */
	__u32 tenant; /* of untagged frames, plus TENANT_*; 0 for none */
	__u32 policy; /* of untagged frames, for H.Encaps.L2; 0 for none */
	__u32 tagged; /* nonzero if an attachment may exist for tagged frames */
};
_Static_assert(sizeof(struct port) == 24, "no hidden padding");

/* Tagged frames of a port (802.1Q, 802.1ad). */
struct attachment_key {
	__u32 ifindex;
	__u16 outer;
	__u16 inner;
};
_Static_assert(sizeof(struct attachment_key) == 8, "no hidden padding");

/* The tenant or policy of these frames. */
struct attachment {
	__u32 tenant; /* plus TENANT_*; 0 for none */
	__u32 policy; /* for H.Encaps.L2; 0 for none */
};
_Static_assert(sizeof(struct attachment) == 8, "no hidden padding");

/* The prefix lengths of a table, longest first. Each costs one lookup. */
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

/* The address space of a tenant: the lengths of its prefixes. There are two copies, since the
 * active one must not be modified while packets read it. */
struct tenant {
	struct lengths4 ipv4[2];
	struct lengths6 ipv6[2];
	__u32 active; /* 0 or 1 */
};
_Static_assert(sizeof(struct tenant) == 332, "no hidden padding");

/*
 * A hash index from keys to record numbers.
 *
 * A key has two candidate buckets of one cache line each. The tag of an entry avoids most reads of
 * other records. User space inserts into the bucket with more free entries. It writes a record
 * before the index refers to it, and reuses the record for another key only after every packet that
 * might have found it has left the program.
 */
enum index {
	/* Entries in one bucket. */
	INDEX_ENTRIES = 8,
};

struct bucket {
	__u16 tag[INDEX_ENTRIES]; /* 0 for a free entry */
	__u32 record[INDEX_ENTRIES];
	__u8 pad[16];
};
_Static_assert(sizeof(struct bucket) == 64, "one cache line");

/* A prefix of a tenant, and its policy. The address is masked. */
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

/* The treatment of packets to a prefix (RFC 9256): a single segment list, or several selected by
 * the flow hash. A policy belongs to one tenant. */
struct policy {
	__u32 list;    /* the outer header; 0 if there is none yet */
	__u32 spread;  /* if not 0, the weighted lists to use instead */
	__u32 counter;
	__u32 in_kernel; /* nonzero if the kernel has this policy too */
};
_Static_assert(sizeof(struct policy) == 16, "no hidden padding");

struct spread {
	__u32 list[LIMIT_SPREAD];
};
_Static_assert(sizeof(struct spread) == 256, "no hidden padding");

/* A segment list in the form of its outer header (RFC 8986 section 5): IPv6, followed by the SRH if
 * there is one. The fields that depend on the packet are zero: payload length, flow label, hop
 * limit and next header. */
struct outer {
	__u16 length;    /* of `header`; 0 for none */
	__u8 has_srh;
	__u8 pad[5];
	__u8 header[LIMIT_OUTER];
	__u8 rest[40];
};
_Static_assert(sizeof(struct outer) == 256, "whole cache lines: a list of one needs but the first");

/* Endpoint behaviors (RFC 8986 section 4). */
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
};

/* Flags of a SID: its flavors (RFC 8986 section 4.16, RFC 9800 section 4.1), and its presence in
 * the kernel. */
enum sid_flag {
	SID_PSP = 1,
	SID_USP = 2,
	SID_USD = 4,
	SID_NEXT_CSID = 8,
	SID_IN_KERNEL = 16,
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

/* The argument of a behavior, which selects the member. */
union sid_argument {
	__u64 next_hop6[2];             /* X, DX6: zero for the packet's own destination */
	__be32 next_hop4;               /* DX4: zero for the packet's own destination */
	struct sid_table table;         /* T, DT4, DT6, DT46 */
	__u32 port;                     /* DX2: the egress interface */
	struct sid_vlan vlans[4];       /* DX2V */
	__u32 policy;                   /* B6.Encaps */
	struct sid_netfilter netfilter; /* AN.NF */
	struct sid_proxy proxy;         /* AS, AD, AM */
	__u64 words[2];                 /* the whole, for copies */
};

/* A SID and its behavior. A SID is a prefix, usually of 128 bits, shorter if it has an argument.
 * The address is masked. */
struct sid {
	__u64 address[2];
	union sid_argument argument;
	__u32 version; /* version of `control` at which the counter was assigned to this SID */
	__u32 counter;
	__u8 behavior;
	__u8 flags;
	__u8 csid;   /* NEXT-C-SID: locator block length in bytes times 16, plus node and
		      * function length */
	__u8 length; /* prefix length in bits */
	__u16 outer; /* VLAN tags to push after decapsulation */
	__u16 inner;
};
_Static_assert(sizeof(struct sid) == 48, "no hidden padding");

/* An entry of a CPU's SID cache, which is indexed by address. */
struct found_sid {
	struct sid sid; /* with the full address, and the version of `control` at lookup time */
	/* If the SID's length is 128, the value that is flushed into the SID's counter of this CPU
	 * when the entry is evicted. For other SIDs and for End.B6.Encaps, the counter itself is
	 * updated. */
	struct count count;
};
/* With two cache lines each, ten thousand entries would exceed a second-level cache of 1 MiB. */
_Static_assert(sizeof(struct found_sid) == 64, "one cache line");

/* Combined with a tenant number: the address is an IPv6 address. */
#define FOUND_IPV6 (1u << 31)

/* An entry of a CPU's policy cache, which is indexed by a tenant's destination address. */
struct found_policy {
	__u64 address[2]; /* IPv4 in the first 4 bytes, the rest zero */
	__u32 owner;      /* the tenant, plus FOUND_IPV6 for IPv6 */
	__u32 version;    /* of `control` */
	__u32 policy;
	__u32 pad;
};
_Static_assert(sizeof(struct found_policy) == 32, "two in a cache line");

/* An interface stacked on a port, such as a VLAN interface: packets routed to it leave by the port,
 * tagged. */
struct upper {
	__u32 ifindex;
	__u16 outer;
	__u16 inner;
};
_Static_assert(sizeof(struct upper) == 8, "no hidden padding");

/* The inputs of a route lookup. All fields are 64-bit words, so that a comparison needs no partial
 * words. */
struct route_key {
	__u64 dst[2]; /* IPv4 in the first 4 bytes, the rest zero */
	__u64 src[2];
	__u64 flow;  /* ROUTE_FLOW: other inputs to rules and to the multipath hash */
	__u64 table; /* ROUTE_TABLE: the table, or the rules that select it */
};
_Static_assert(sizeof(struct route_key) == 48, "no hidden padding");

/* The result of a lookup in the kernel's tables, in the cache of one CPU. No other CPU reads or
 * writes the entry. */
struct adjacency {
	struct route_key key;
	__u32 generation; /* valid while equal to that of `control` */
	__u32 ifindex;    /* egress port */
	__u8 stations[12]; /* destination MAC address (the next hop), then source MAC address
			    * (the port) */
	__u16 mtu;
	__u16 outer;
	__u16 inner;
	__u8 pad[6];
};
_Static_assert(sizeof(struct adjacency) == 80, "no hidden padding");

/* A next hop that could not be resolved. The daemon starts its resolution and clears the entry. */
struct missing {
	__u64 address[2]; /* IPv4 in the first 4 bytes */
	__u32 ifindex;    /* 0 for none */
	__u32 ipv6;
};
_Static_assert(sizeof(struct missing) == 24, "no hidden padding");

/*
 * Saved state of a packet that is in a service function (netfilter): its outer header, with
 * Segments Left already decremented, and the information needed to send it on.
 *
 * Each CPU has a ring of slots. A slot is reused after as many further packets as the ring has
 * slots. Packets that the function fragments, reassembles or duplicates share one slot.
 */
struct slot {
	__u8 tag[6];      /* of the packet: 12 bits of CPU number, 36 bits of a counter */
	__u8 length;      /* of the outer header; 0 while it is written */
	__u8 flags;       /* SLOT_* */
	__u32 generation; /* `ifindex` and `ethernet` are valid while equal to that of `control`;
			   * 0: never */
	__u32 ifindex;    /* egress port */
	__u32 mark;       /* the SID's argument; End.AD: arrival time in units of 2^20 ns */
	__u32 counter;    /* of returning packets */
	__u32 port;       /* ingress port */
	__u8 station[6];  /* source MAC address of the packet */
	__u8 ethernet[14];
	__u8 header[LIMIT_OUTER];
};
_Static_assert(sizeof(struct slot) == 256, "whole cache lines");

/* The hook at which rules drop a packet of a service function. */
enum hook {
	HOOK_PREROUTING,
	HOOK_FORWARD,
	HOOK_POSTROUTING,
	NO_HOOK, /* dropped by the kernel itself */
	HOOKS,
};

/* Packets dropped by a service function, counted on one CPU. */
struct drops {
	__u64 packets[HOOKS];
};

enum slot_flag {
	SLOT_IPV6 = 1,   /* the inner packet is IPv6 */
	SLOT_RAISED = 2, /* the hop limit was incremented, since the kernel decrements it */
	SLOT_AGAIN = 4,  /* the next segment is local to this node */
	SLOT_ROUTED = 8, /* End.AD: the tag returns as the packet's hash, not in the frame */
};

/*
 * Reply table: the address pairs of inner packets that recently entered netfilter.
 *
 * A local reply to such a packet must not leave unencapsulated. Each pair maps to one set, which is
 * one cache line.
 */
#define PASSAGE_PLACES 7

struct passages {
	/* One pair per entry; 0 for a free entry. See passage.h. */
	__u64 place[PASSAGE_PLACES];
	/* Time of the last insertion that found the set full. */
	__u32 full;
	__u32 pad;
};
_Static_assert(sizeof(struct passages) == 64, "one cache line");

/* Indices of `function_devices`. */
enum function_device {
	DEVICE_NETFILTER,
	DEVICE_PROXIES,
	DEVICES,
};

/* The path of a SID's packets to its service function (End.AS, End.AD, End.AM), and the state
 * needed for their return. */
struct proxy {
	__u64 via[2];   /* next-hop address of the function; IPv4 in the first 4 bytes */
	__u32 to;       /* IFACE-OUT; 0 while it is down or missing */
	__u32 ring;     /* AD: ring of slots, one per IFACE-IN */
	__u32 policy;   /* AS: the outer headers to push */
	__u32 counter;  /* of returning packets */
	__u32 port;     /* AS, AM: ingress port of returning packets for further processing */
	__u8 station[6]; /* MAC address of `to` */
	__u8 family;    /* of `via`; 0 for none: the function accepts any destination MAC address */
	__u8 behavior;
	__u32 back;     /* IFACE-IN, on which packets return */
};
_Static_assert(sizeof(struct proxy) == 48, "no hidden padding");

/* Treatment of packets received on an interface that leads to service functions. If both fields are
 * 0, no packets are expected on it. */
struct back {
	__u32 ring;  /* AD: ring of the slots, plus one; 0 for none */
	__u32 proxy; /* AS, AM: proxy of these packets; 0 for none */
};
_Static_assert(sizeof(struct back) == 8, "no hidden padding");

/* Global state, written by the daemon and read for every packet. */
struct control {
	/* All ones if the route of a packet may depend on more than its destination and ingress
	 * port: on a rule, the source, the traffic class, or, for a multipath route, the flow.
	 * Otherwise 0. */
	__u64 exact;
	/* An adjacency of another generation is looked up again. The generation changes with every
	 * route, rule, neighbour and link; if the daemon does not run, every LIMIT_TICK_NS. Never
	 * 0. */
	__u32 generation;
	/* A cached SID or policy of another version of SIDs, prefixes and policies is looked up
	 * again. Never 0. */
	__u32 version;
	/* Incremented while the daemon runs. */
	__u32 heartbeat;
	/* Number of counters of each CPU. */
	__u32 counters;
	/* Number of buckets of each index, minus one. Bucket counts are powers of two. */
	__u32 sid_buckets;
	__u32 prefix4_buckets;
	__u32 prefix6_buckets;
	/* Index of the active copy of `sids`. */
	__u32 active;
	/* Number of slots in each CPU's ring, minus one. The number is a power of two. */
	__u32 slots;
	/* The two ends of a veth: inner packets enter the kernel by the first and leave it by the
	 * second. */
	__u32 function_in;
	__u32 function_out;
	/* Prefix of a tag that is stored as a timestamp, so that no real timestamp is mistaken for
	 * a tag. */
	__u32 magic;
	/* Prefix lengths of the SIDs. */
	struct lengths6 sids[2];
	/* Number of sets in `passages`, minus one. The number is a power of two. */
	__u32 passages;
	/* Time for the reply table: in ticks of 2^30 ns, updated every LIMIT_TICK_NS. Never 0. */
	__u32 passage_time;
	/* The two ends of another veth: inner packets of proxies arrive from XDP on the first;
	 * packets to another local SID are sent to the second. */
	__u32 proxy_in;
	__u32 proxy_out;
	/* Random number of this program instance: another instance numbers its proxies
	 * differently. */
	__u32 program;
};
_Static_assert(sizeof(struct control) == 336, "no hidden padding");

/* A prefix of one family, in wire byte order; IPv4 in the first 4 bytes. */
struct trace_prefix {
	__u64 address[2];
	__u64 mask[2];
};

/* Selects the packets to trace. */
struct trace_filter {
	struct trace_prefix source;
	struct trace_prefix destination;
	__u32 ifindex; /* ingress interface; 0 for all */
	__s32 left;    /* number of packets still to trace */
	__u16 vlan;    /* outer VLAN tag; 0 for all */
	__u8 family;   /* 4 or 6; 0 for all, in which case the addresses are ignored */
	__u8 pad[5];
};
_Static_assert(sizeof(struct trace_filter) == 80, "no hidden padding");

/* A traced packet, as received. */
struct traced_packet {
	__u64 at_ns; /* CLOCK_MONOTONIC */
	__u32 ifindex;
	__u32 length; /* of the whole frame, which may exceed `bytes` */
	__u8 bytes[2032];
};
_Static_assert(sizeof(struct traced_packet) == 2048, "a power of two");

#endif
