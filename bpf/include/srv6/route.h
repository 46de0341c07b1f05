/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Route lookup: bpf_fib_lookup() in the kernel's routing tables, with a per-CPU cache of its
 * results.
 *
 * route() returns an adjacency, or null and a reason. Addresses are in wire byte order.
 *
 * The FIB lookup takes two thirds of the forwarding cost (340 of 440 ns for IPv6), so its result is
 * cached under all inputs that it depends on: destination, ingress port and table. While multipath
 * routes, policy rules or routes by source or class may exist (`control.exact`), the key also
 * includes source, flow label, traffic class and protocol. An entry is valid until the daemon,
 * which is notified of every change of routes, rules, neighbors and links, starts a new
 * generation. While the daemon does not run, a timer does so ten times a second.
 */
#ifndef KAIDO_SRV6_ROUTE_H
#define KAIDO_SRV6_ROUTE_H

#include "frame.h"

#define AF_INET 2
#define AF_INET6 10

#define FLOW_MASK bpf_htonl(0x0fffffff) /* traffic class and flow label of an IPv6 header */

/* `flow`: the FLOW_MASK bits of an IPv6 header, or the type of service of IPv4. */
#define ROUTE_FLOW(flow, protocol) ((__u64)(flow) | (__u64)(protocol) << 32)
/* `device`: the ingress port, or a VRF. `table`: 0 if the rules select it. The family is in the top
 * bit of `device`: interface indices have 31 bits. */
#define ROUTE_TABLE(family, device, table) \
	((__u64)(device) | (__u64)((family) == AF_INET6) << 31 | (__u64)(table) << 32)

/* Value of `table` for a VRF device: looks up in the VRF's table, without rules. */
#define ROUTE_IN_VRF 0xffffffff

/* Functions with many call sites are not static: the verifier then checks them once and not at
 * every call, which halves the instructions it processes (64,000 instead of 127,000). */

/* Hashes a key. The high bits depend on the whole key, and the multiplications are independent of
 * each other. */
static __always_inline __u64 hash_of(__u64 dst0, __u64 dst1, __u64 table)
{
	return dst0 * 0x9e3779b97f4a7c15ull + dst1 * 0xc2b2ae3d27d4eb4full +
	       table * 0xc4ceb9fe1a85ec53ull;
}

/* Returns the MTU of an interface, by which the kernel forwards (ip6_dst_mtu_maybe_forward()). The
 * result of a FIB lookup includes path MTUs that the node has learned. The ICMP errors from which
 * it learns them can be forged. */
static __always_inline __u16 device_mtu(struct xdp_md *ctx, __u32 ifindex)
{
	__u32 mtu = 0;

	/* Fails for the length of this frame, but always returns the MTU. */
	bpf_check_mtu(ctx, ifindex, &mtu, 0, 0);
	return mtu < 0xffff ? mtu : 0xffff;
}

/* Reports a next hop that the kernel has not resolved. Each egress interface has entries of its
 * own, unless their indices differ by a multiple of LIMIT_UNRESOLVED_LINKS: packets to absent hosts
 * on one interface displace no next hop on another. */
static __always_inline void report_unresolved(const struct bpf_fib_lookup *fib)
{
	__u64 address[2] = {fib->ipv4_dst, 0};

	if (fib->family == AF_INET6)
		__builtin_memcpy(address, fib->ipv6_dst, sizeof(address));
	__u32 at = hash_of(address[0], address[1], 0) >> (64 - LIMIT_UNRESOLVED_BITS);

	at |= (fib->ifindex & (LIMIT_UNRESOLVED_LINKS - 1)) << LIMIT_UNRESOLVED_BITS;
	struct unresolved *entry = bpf_map_lookup_elem(&unresolved, &at);

	if (entry) {
		entry->ipv6 = fib->family == AF_INET6;
		entry->address[0] = address[0];
		entry->address[1] = address[1];
		entry->ifindex = fib->ifindex;
	}
}

/*
 * Looks up the key in the kernel and caches the result at index `at`, in this CPU's row. Returns
 * -1, or the reason why the packet cannot be forwarded.
 */
__noinline int ask_kernel(struct xdp_md *ctx, const struct route_key *key, __u32 at)
{
	struct bpf_fib_lookup fib = {};
	__u32 zero = 0, device, table, flags = 0;
	struct adjacency *entry = bpf_map_lookup_elem(&adjacencies, &at);
	struct control *state = bpf_map_lookup_elem(&control, &zero);

	if (!key || !entry || !state)
		return REASON_NO_ROUTE;
	/* Read before the lookup, so that a change during the lookup invalidates the entry. */
	__u32 generation = *(volatile __u32 *)&state->generation;

	device = key->table & 0x7fffffff;
	table = key->table >> 32;
	fib.ifindex = device;
	fib.l4_protocol = key->flow >> 32;
	if (key->table & 1u << 31) {
		fib.family = AF_INET6;
		fib.flowinfo = (__u32)key->flow;
		__builtin_memcpy(fib.ipv6_src, key->src, 16);
		__builtin_memcpy(fib.ipv6_dst, key->dst, 16);
	} else {
		fib.family = AF_INET;
		fib.tos = (__u32)key->flow;
		fib.ipv4_src = (__u32)key->src[0];
		fib.ipv4_dst = (__u32)key->dst[0];
	}
	if (table) {
		flags = BPF_FIB_LOOKUP_DIRECT;
		if (table != ROUTE_IN_VRF) {
			flags |= BPF_FIB_LOOKUP_TBID;
			fib.tbid = table;
		}
	}
	long answer = bpf_fib_lookup(ctx, &fib, sizeof(fib), flags);

	/* The kernel marks a new neighbor as valid shortly before it writes its address
	 * (__neigh_update()). With neighbors that appear and disappear, this affects one frame in
	 * 500 million. */
	if (answer == BPF_FIB_LKUP_RET_SUCCESS &&
	    !(load16(fib.dmac) | load16(fib.dmac + 2) | load16(fib.dmac + 4)))
		answer = BPF_FIB_LKUP_RET_NO_NEIGH;
	if (answer == BPF_FIB_LKUP_RET_NO_NEIGH) {
		/* The kernel resolves only neighbors of packets that it sends itself, and it lacks
		 * this entry. */
		report_unresolved(&fib);
		return REASON_NO_NEIGHBOR;
	}
	if (answer != BPF_FIB_LKUP_RET_SUCCESS)
		return REASON_NO_ROUTE;

	struct upper direct = {.ifindex = fib.ifindex};
	const struct upper *upper = bpf_map_lookup_elem(&stacked_links, &direct.ifindex);

	if (!upper)
		upper = &direct;
	__u32 slot = upper->ifindex & (LIMIT_PORTS - 1);
	const struct port *port = bpf_map_lookup_elem(&ports, &slot);

	if (!port || port->ifindex != upper->ifindex)
		return REASON_OTHER_PORT;
	entry->key = *key;
	entry->ifindex = upper->ifindex;
	entry->outer = upper->outer;
	entry->inner = upper->inner;
	entry->mtu = state->locked_mtus ? fib.mtu_result : device_mtu(ctx, fib.ifindex);
	__builtin_memcpy(entry->stations, fib.dmac, ETH_ALEN);
	__builtin_memcpy(entry->stations + ETH_ALEN, fib.smac, ETH_ALEN);
	entry->generation = generation;
	return -1;
}

/* The contribution of the rest of the key to the hash. */
static __always_inline __u64 more_of(__u64 src0, __u64 src1, __u64 flow)
{
	return src0 * 0x165667b19e3779f9ull + src1 * 0xd6e8feb86659fd93ull +
	       flow * 0xff51afd7ed558ccdull;
}

#define PLACE(hash) ((hash) >> (64 - LIMIT_ADJACENCY_BITS))

/*
 * Returns the second slot of a key that is not in its first slot, `first`, if it is there.
 * Otherwise returns the slot of the two to insert it into, with ELSEWHERE set.
 *
 * Every key has two slots (Pagh and Rodler, Cuckoo Hashing, 2004). An evicted key is looked up
 * again and evicts another one, chosen at random. With fewer flows than half the number of slots,
 * each flow soon has a slot of its own.
 */
#define ELSEWHERE (1u << 31)

__noinline __u32 other_place(const struct route_key *key, __u64 hash, __u32 first,
			     __u32 generation)
{
	__u32 row = first >> LIMIT_ADJACENCY_BITS << LIMIT_ADJACENCY_BITS, second;
	const struct adjacency *one = bpf_map_lookup_elem(&adjacencies, &first);

	hash = (hash ^ hash >> 32) * 0xff51afd7ed558ccdull;
	second = row + PLACE(hash);
	const struct adjacency *other = bpf_map_lookup_elem(&adjacencies, &second);

	if (!key || !one || !other || one->generation != generation)
		return first | ELSEWHERE;
	if (other->generation != generation)
		return second | ELSEWHERE;
	if (other->key.dst[0] == key->dst[0] && other->key.dst[1] == key->dst[1] &&
	    other->key.src[0] == key->src[0] && other->key.src[1] == key->src[1] &&
	    other->key.flow == key->flow && other->key.table == key->table)
		return second;
	return (bpf_get_prandom_u32() & 1 ? first : second) | ELSEWHERE;
}

/*
 * Returns the adjacency for a packet, or null with `*reason` set. `table` is a ROUTE_TABLE value,
 * `flow` a ROUTE_FLOW value. The entry belongs to this CPU and remains valid until the program
 * returns.
 */
static __always_inline const struct adjacency *route(const struct frame *frame, __u64 dst0,
						     __u64 dst1, __u64 src0, __u64 src1,
						     __u64 flow, __u64 table, int *reason)
{
	__u64 exact = frame->control->exact, hash = hash_of(dst0, dst1, table);

	if (exact)
		hash += more_of(src0, src1, flow);
	__u32 row = frame->row << LIMIT_ADJACENCY_BITS, at = row + PLACE(hash);
	const struct adjacency *entry = bpf_map_lookup_elem(&adjacencies, &at);

	/* Always set: the Linux 6.1 verifier rejects even a copy of an uninitialized value. */
	*reason = REASON_NO_ROUTE;
	if (!entry)
		return 0;
	__u64 differs = (entry->key.dst[0] ^ dst0) | (entry->key.dst[1] ^ dst1) |
			(entry->key.table ^ table) |
			(entry->generation ^ frame->control->generation);

	if (exact)
		differs |= (entry->key.src[0] ^ src0) | (entry->key.src[1] ^ src1) |
			   (entry->key.flow ^ flow);
	else
		differs |= entry->key.src[0] | entry->key.src[1] | entry->key.flow;

	if (!differs)
		return entry;

	__u32 zero = 0;
	struct route_key *key = bpf_map_lookup_elem(&route_scratch, &zero);

	if (!key)
		return 0;
	key->dst[0] = dst0;
	key->dst[1] = dst1;
	key->src[0] = src0 & exact;
	key->src[1] = src1 & exact;
	key->flow = flow & exact;
	key->table = table;
	at = other_place(key, hash, at, frame->control->generation);
	if (at & ELSEWHERE) {
		at &= ~ELSEWHERE;
		int answer = ask_kernel(frame->ctx, key, at);

		if (answer >= 0) {
			*reason = answer;
			return 0;
		}
	}
	return bpf_map_lookup_elem(&adjacencies, &at);
}

#endif
