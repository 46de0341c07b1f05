/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Maps of the SRv6 data plane. User space sets their sizes before it loads the program; the sizes
 * given here suit a small node. Mappable arrays are written without a system call per entry.
 */
#ifndef KAIDO_SRV6_MAPS_H
#define KAIDO_SRV6_MAPS_H

#include "../abi.h"

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LIMIT_PORTS);
	__type(key, __u32);
	__type(value, struct port);
} ports SEC(".maps");

/* Redirect targets, indexed by the same slots as `ports`. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, LIMIT_PORTS);
	__type(key, __u32);
	__type(value, __u32);
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct upper);
} stacked_links SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct attachment_key);
	__type(value, struct attachment);
} attachments SEC(".maps");

/* VLANs in the SR domain, indexed by vlan_slot_of(). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LIMIT_VLAN_SLOTS);
	__type(key, __u32);
	__type(value, struct vlan_slot);
} vlan_slots SEC(".maps");

/* Memory is allocated per entry. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct source);
	__type(value, __u32);
} sources SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct tenant);
} tenants SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct prefix4);
} prefixes4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct bucket);
} prefix4_index SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct prefix6);
} prefixes6 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct bucket);
} prefix6_index SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct policy);
} policies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct spread);
} spreads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct outer);
} lists SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct sid);
} sids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct bucket);
} sid_index SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LIMIT_UNRESOLVED_LINKS << LIMIT_UNRESOLVED_BITS);
	__type(key, __u32);
	__type(value, struct unresolved);
} unresolved SEC(".maps");

/* The key of the lookup in progress. It is not on the stack: the stack is limited to 512 bytes over
 * the whole call chain, and Linux 6.1 rounds each frame up to 32. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct route_key);
} route_scratch SEC(".maps");

/* One row per CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << LIMIT_ADJACENCY_BITS);
	__type(key, __u32);
	__type(value, struct adjacency);
} adjacencies SEC(".maps");

/* One row per CPU, as in the maps below. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << LIMIT_FOUND_BITS);
	__type(key, __u32);
	__type(value, struct found_sid);
} found_sids SEC(".maps");

/* Mappable only for its alignment: to pages, and therefore to cache lines. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << LIMIT_FOUND_BITS);
	__type(key, __u32);
	__type(value, struct found_policy);
} found_policies SEC(".maps");

/* Devices that return inner packets to the kernel as if they came from outside, indexed by `enum
 * function_device`. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, DEVICES);
	__type(key, __u32);
	__type(value, __u32);
} function_devices SEC(".maps");

/* One ring per CPU. Mappable only for the alignment, as is the next map. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct passages);
} passages SEC(".maps");

/* Policies for replies. An entry keeps its number when the policy's record or the program is
 * replaced. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2048);
	__type(key, __u32);
	__type(value, __u32);
} return_policies SEC(".maps");

/* Indexed by the counter of returning packets. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct drops);
} function_drops SEC(".maps");

/* Number of slots that each CPU has allocated. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} slot_heads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct proxy);
} proxies SEC(".maps");

/* Indexed by interface. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct back);
} return_links SEC(".maps");

/* Interfaces that lead to functions of proxies, indexed by interface number, and present once
 * packets that return on them are handled. The kernel removes the entry of a deleted interface,
 * even if a new interface takes over its number immediately. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} function_links SEC(".maps");

/* Rings of LIMIT_PROXIED slots. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot);
} proxy_slots SEC(".maps");

/* Number of slots allocated in each ring. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} proxy_heads SEC(".maps");

/* One row of control.counters entries per CPU. A per-CPU array would need a helper call on older
 * kernels, and one allocation per entry. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct count);
} counts SEC(".maps");

#endif
