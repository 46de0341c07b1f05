/* Hand-written counterpart of crates/p4/tests/programs/tunnel_encap.p4. */
#include "ubpf.h"

struct prefix {
	u32 bits;
	u32 address;
};

struct tunnel {
	u32 action, from, to;
};

enum { IP_IN_IP, GRE, NO_ACTION };

MAP(c_tunnels, LPM_TRIE, sizeof(struct prefix), sizeof(struct tunnel), 1024);
MAP(c_ids, ARRAY, 4, 2, 1);

/* Returns the one's complement sum of a header's words, in network byte order (RFC 1071). */
static always_inline u16 checksum_of(const struct ipv4 *ipv4)
{
	const u16 *words = (const void *)ipv4;
	u32 sum = 0;

#pragma clang loop unroll(full)
	for (int at = 0; at < 10; at++)
		if (at != 5)
			sum += words[at];
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return ~sum;
}

u64 entry(void *context, struct standard_metadata *std)
{
	u8 *packet = packet_data(context);
	u32 length = std->packet_length, index = 0, more;
	struct ethernet *ethernet = (void *)packet;
	struct ipv4 *ipv4 = (void *)(packet + 14), *outer;
	struct tunnel *tunnel;
	struct prefix prefix;
	u16 *next, id = 0;

	if (length < 14)
		return give_up(std);
	if (ethernet->type != be16(0x0800))
		return pass(std);
	if (length < 34)
		return give_up(std);
	if (ipv4->ttl <= 1)
		return drop(std);
	ipv4->ttl -= 1;
	ipv4->checksum = be16(replaced2(be16(ipv4->checksum), (ipv4->ttl + 1) << 8, ipv4->ttl << 8));
	prefix.bits = 32;
	prefix.address = ipv4->dst;
	tunnel = map_lookup(&c_tunnels, &prefix);
	if (!tunnel || tunnel->action == NO_ACTION)
		return pass(std);
	next = map_lookup(&c_ids, &index);
	if (next) {
		id = *next;
		*next += 1;
	}
	more = tunnel->action == GRE ? 24 : 20;
	packet = adjust_head(context, more);
	if (!packet)
		return give_up(std);
	move_ethernet(packet, packet + more);
	outer = (void *)(packet + 14);
	ipv4 = (void *)(packet + 14 + more);
	outer->version_ihl = (ipv4->version_ihl & 0xf0) | 5;
	outer->dscp = ipv4->dscp;
	outer->length = be16(be16(ipv4->length) + more);
	outer->id = be16(id);
	outer->offset = ipv4->offset & be16(0x4000);
	outer->ttl = 64;
	outer->protocol = tunnel->action == GRE ? 47 : 4;
	outer->src = be32(tunnel->from);
	outer->dst = be32(tunnel->to);
	outer->checksum = checksum_of(outer);
	if (tunnel->action == GRE)
		*(u32 *)(packet + 34) = be32(0x0800);
	return pass(std);
}
