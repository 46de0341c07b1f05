/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Prefixes of tenants, their index, policies and segment lists. */
#ifndef KAIDO_ABI_PREFIXES_H
#define KAIDO_ABI_PREFIXES_H

#include <linux/types.h>
#include "limits.h"

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

/* The use of a segment list. */
enum outer_mode {
	OUTER_ENCAPS,
	OUTER_GTP,    /* for payloads of GTP-U (RFC 9433) */
	OUTER_INSERT, /* only the SRH, whose last segment is the packet's destination */
};

/* A segment list in the form of its outer header (RFC 8986 section 5): IPv6, followed by the SRH if
 * there is one. The fields that depend on the packet are zero: payload length, flow label, hop
 * limit and next header. */
struct outer {
	__u16 length;    /* of `header`; 0 for none */
	__u8 has_srh;
	__u8 mode; /* of enum outer_mode */
	/* For payloads of GTP-U, in bits: the position of the argument in the last segment, 0 for none,
	 * and of the IPv4 source in the source address. */
	__u8 args_at;
	__u8 source_at;
	/* 1 if the last segment is the original destination (End.M.GTP6.D.Di). The argument is then in
	 * the segment before. */
	__u8 is_drop_in;
	__u8 pad;
	__u8 header[LIMIT_OUTER];
	__u8 rest[40];
};
_Static_assert(sizeof(struct outer) == 256, "whole cache lines: a list of one needs but the first");

/* Combined with a tenant number: the address is an IPv6 address. */
#define OWNER_IPV6 (1u << 31)

/* An entry of a CPU's policy cache, which is indexed by a tenant's destination address. */
struct found_policy {
	__u64 address[2]; /* IPv4 in the first 4 bytes, the rest zero */
	__u32 owner;      /* the tenant, plus OWNER_IPV6 for IPv6 */
	__u32 version;    /* of `control` */
	__u32 policy;
	__u32 pad;
};
_Static_assert(sizeof(struct found_policy) == 32, "two in a cache line");

#endif
