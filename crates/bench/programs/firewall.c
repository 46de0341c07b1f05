/* Hand-written counterpart of crates/p4/tests/programs/firewall.p4. */
#include "ubpf.h"

struct key {
	u64 src, dst, protocol, sport, dport;
};

struct value {
	u32 action;
};

enum { ALLOW, DENY };

MAP(c_rules, TERNARY, sizeof(struct key), sizeof(struct value), 256);
MAP(c_packets, ARRAY, 4, 4, 2);

static always_inline void count(u32 index)
{
	u32 *packets = map_lookup(&c_packets, &index);

	if (packets)
		*packets += 1;
}

static always_inline u64 deny(struct standard_metadata *std)
{
	count(1);
	return drop(std);
}

u64 entry(void *context, struct standard_metadata *std)
{
	u8 *packet = packet_data(context);
	u32 length = std->packet_length;
	struct ethernet *ethernet = (void *)packet;
	struct ipv4 *ipv4 = (void *)(packet + 14);
	struct key key = {};
	struct value *rule;
	u16 offset;

	if (length < 14)
		return give_up(std);
	if (ethernet->type != be16(0x0800))
		return ethernet->type == be16(0x0806) ? pass(std) : drop(std);
	if (length < 34 || ipv4->version_ihl != 0x45)
		return give_up(std);
	offset = be16(ipv4->offset) & 0x1fff;
	if (offset == 0 && (ipv4->protocol == 6 || ipv4->protocol == 17)) {
		u16 *ports = (void *)(packet + 34);

		if (length < (ipv4->protocol == 6 ? 48 : 38))
			return give_up(std);
		key.sport = be16(ports[0]);
		key.dport = be16(ports[1]);
		/* Reject packets with both SYN and FIN, which are never legitimate. */
		if (ipv4->protocol == 6 && (packet[47] & 3) == 3)
			return deny(std);
	}
	if (offset != 0)
		return drop(std);
	key.src = be32(ipv4->src);
	key.dst = be32(ipv4->dst);
	key.protocol = ipv4->protocol;
	rule = map_lookup(&c_rules, &key);
	if (!rule || rule->action == DENY)
		return deny(std);
	count(0);
	return pass(std);
}
