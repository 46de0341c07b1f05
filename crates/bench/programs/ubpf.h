/* Environment of a program for the uBPF model (crates/p4-ebpf/src/layout, and p4c's uBPF runtime). The
 * program is called as entry(packet, metadata), and returns 0 to drop the packet or 1 to pass it.
 * Numbers in keys and values are in host byte order. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

enum action { ABORT, DROP, PASS, REDIRECT };

struct standard_metadata {
	u32 input_port;
	u32 packet_length;
	u32 output_action;
	u32 output_port;
	u8 clone;
	u32 clone_port;
};

struct map {
	u32 type, key_size, value_size, max_entries, unused;
};

enum map_type { ARRAY = 1, HASH = 4, LPM_TRIE = 5, TERNARY = 100 };

#define MAP(name, type, key, value, most) \
	struct map __attribute__((section("maps"), used)) name = { type, key, value, most, 0 }

static void *(*const map_lookup)(const struct map *, const void *) = (void *)1;
static long (*const map_update)(const struct map *, const void *, const void *) = (void *)2;
static u64 (*const time_get_ns)(void) = (void *)5;
static u32 (*const hash)(const void *, u64) = (void *)6;
/* Grows or shrinks the packet at the front. Returns its new start; lack of headroom is a fault. */
static void *(*const adjust_head)(void *, int) = (void *)8;
static void *(*const packet_data)(void *) = (void *)9;
/* Truncates the packet to a length. Returns the number of bytes removed. */
static u32 (*const truncate)(void *, int) = (void *)11;

#define always_inline inline __attribute__((always_inline))

static always_inline u16 be16(u16 value)
{
	return __builtin_bswap16(value);
}

static always_inline u32 be32(u32 value)
{
	return __builtin_bswap32(value);
}

static always_inline u64 be64(u64 value)
{
	return __builtin_bswap64(value);
}

/* Reports that the program could not continue. */
static always_inline u64 give_up(struct standard_metadata *std)
{
	std->output_action = ABORT;
	return 0;
}

static always_inline u64 drop(struct standard_metadata *std)
{
	std->output_action = DROP;
	return 0;
}

static always_inline u64 pass(struct standard_metadata *std)
{
	std->output_action = PASS;
	return 1;
}

/* Packets may be unaligned in memory. */
struct ethernet {
	u8 dst[6], src[6];
	u16 type;
} __attribute__((packed));

struct ipv4 {
	u8 version_ihl, dscp;
	u16 length, id, offset;
	u8 ttl, protocol;
	u16 checksum;
	u32 src, dst;
} __attribute__((packed));

struct ipv6 {
	u32 version_class_flow;
	u16 length;
	u8 next, hops;
	u64 src[2], dst[2];
} __attribute__((packed));

struct udp {
	u16 src, dst, length, checksum;
} __attribute__((packed));

/* Updates a checksum after a change of 16 bits (RFC 1624, equation 3), in host byte order. */
static always_inline u16 replaced2(u16 sum, u16 old, u16 new)
{
	u32 total = (u16)~sum + (u16)~old + new;

	total = (total & 0xffff) + (total >> 16);
	return ~((total & 0xffff) + (total >> 16));
}

/* Updates a checksum after a change of 32 bits. */
static always_inline u16 replaced4(u16 sum, u32 old, u32 new)
{
	u32 total = (u16)~sum + (u16)~old + (u16)~(old >> 16) + (u16)new + (new >> 16);

	total = (total & 0xffff) + (total >> 16);
	return ~((total & 0xffff) + (total >> 16));
}

static always_inline u64 redirect(struct standard_metadata *std, u32 port)
{
	std->output_action = REDIRECT;
	std->output_port = port;
	return 1;
}

/* Moves an Ethernet header in whole words. */
static always_inline void move_ethernet(u8 *to, const u8 *from)
{
	u64 first = *(const u64 *)from;
	u32 second = *(const u32 *)(from + 8);
	u16 type = *(const u16 *)(from + 12);

	*(u64 *)to = first;
	*(u32 *)(to + 8) = second;
	*(u16 *)(to + 12) = type;
}
