/* Hand-written counterpart of crates/p4/tests/programs/heavy_hitter.p4. */
#include "ubpf.h"

#define MOST 4

MAP(c_packets_first_counts, ARRAY, 4, 4, 16);
MAP(c_packets_second_counts, ARRAY, 4, 4, 16);
MAP(c_packets_third_counts, ARRAY, 4, 4, 16);

static always_inline u32 row(const struct map *counts, u32 source, u8 seed)
{
	u32 index, *count;
	u8 data[5];

	*(u32 *)data = source;
	data[4] = seed;
	index = hash(data, sizeof(data)) & 15;
	count = map_lookup(counts, &index);
	if (!count)
		return 1;
	if (*count != ~0u)
		*count += 1;
	return *count;
}

u64 entry(void *context, struct standard_metadata *std)
{
	u8 *packet = packet_data(context);
	u32 length = std->packet_length, count, other;
	struct ethernet *ethernet = (void *)packet;
	struct ipv4 *ipv4 = (void *)(packet + 14);
	u16 old;

	if (length < 14)
		return give_up(std);
	if (ethernet->type != be16(0x0800))
		return pass(std);
	if (length < 34)
		return give_up(std);
	count = row(&c_packets_first_counts, ipv4->src, 1);
	other = row(&c_packets_second_counts, ipv4->src, 2);
	count = other < count ? other : count;
	other = row(&c_packets_third_counts, ipv4->src, 3);
	count = other < count ? other : count;
	if (count <= MOST)
		return pass(std);
	old = be16(*(u16 *)ipv4);
	ipv4->dscp = 0x20;
	ipv4->checksum = be16(replaced2(be16(ipv4->checksum), old, (old & 0xff00) | 0x20));
	if (count == MOST + 1) {
		std->clone = 1;
		std->clone_port = 7;
	}
	return pass(std);
}
