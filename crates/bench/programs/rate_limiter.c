/* Hand-written counterpart of crates/p4/tests/programs/rate_limiter.p4. */
#include "ubpf.h"

struct class_value {
	u32 action, class, bytes_per_ms, most;
};

enum { TAKE };

struct bucket {
	u32 tokens, zero;
	u64 at;
	u8 used, zero2[7];
};

struct prefix {
	u32 bits;
	u32 address;
};

struct excess {
	u32 action;
	u8 class, zero[3];
};

enum { COLOR, REFUSE };

MAP(c_limiter_classes_of, TERNARY, 8, sizeof(struct class_value), 1024);
MAP(c_limiter_buckets, ARRAY, 4, sizeof(struct bucket), 4);
MAP(c_limiter_dropped, ARRAY, 4, 4, 4);
MAP(c_excess, LPM_TRIE, sizeof(struct prefix), sizeof(struct excess), 1024);

static always_inline u32 saturated(u32 one, u32 other)
{
	return one + other < one ? ~0u : one + other;
}

/* Returns nonzero if the token bucket of a class has enough tokens for a packet. */
static always_inline int take(struct class_value *class, u32 bytes)
{
	u64 now = time_get_ns() & 0xffffffffffff, ms;
	u32 index = class->class, more, *dropped, tokens;
	struct bucket *bucket = map_lookup(&c_limiter_buckets, &index);

	if (!bucket)
		return class->most >= bytes;
	if (!bucket->used) {
		bucket->tokens = class->most;
		bucket->at = now;
		bucket->used = 1;
	}
	ms = ((now - bucket->at) & 0xffffffffffff) >> 20;
	more = ms > 0xffff ? class->most : (u32)ms * class->bytes_per_ms;
	tokens = saturated(bucket->tokens, more);
	if (tokens > class->most)
		tokens = class->most;
	bucket->at = (bucket->at + (ms << 20)) & 0xffffffffffff;
	if (tokens >= bytes) {
		bucket->tokens = tokens - bytes;
		return 1;
	}
	bucket->tokens = tokens;
	dropped = map_lookup(&c_limiter_dropped, &index);
	if (dropped)
		*dropped += 1;
	return 0;
}

u64 entry(void *context, struct standard_metadata *std)
{
	u8 *packet = packet_data(context);
	u32 length = std->packet_length;
	struct ethernet *ethernet = (void *)packet;
	struct ipv4 *ipv4 = (void *)(packet + 14);
	struct class_value *class;
	struct excess *excess;
	struct prefix prefix;
	u64 key = length;
	u16 old, new;

	if (length < 14)
		return give_up(std);
	if (ethernet->type != be16(0x0800))
		return pass(std);
	if (length < 34)
		return give_up(std);
	class = map_lookup(&c_limiter_classes_of, &key);
	if (!class || class->action != TAKE || take(class, length))
		return pass(std);
	prefix.bits = 32;
	prefix.address = ipv4->src;
	excess = map_lookup(&c_excess, &prefix);
	if (!excess || excess->action == REFUSE)
		return drop(std);
	old = be16(*(u16 *)ipv4);
	new = (old & 0xff03) | excess->class << 2;
	ipv4->dscp = new;
	ipv4->checksum = be16(replaced2(be16(ipv4->checksum), old, new));
	return pass(std);
}
