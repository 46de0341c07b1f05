/* Hand-written counterpart of crates/p4/tests/programs/tunnel_decap.p4. */
#include "ubpf.h"

struct key {
	u32 key, dst, src;
	u8 is_gre, zero[3];
};

struct value {
	u32 action;
};

enum { UNWRAP, REFUSE };

MAP(c_ends, HASH, sizeof(struct key), sizeof(struct value), 1024);

u64 entry(void *context, struct standard_metadata *std)
{
	u8 *packet = packet_data(context);
	u32 length = std->packet_length, less = 20;
	struct ethernet *ethernet = (void *)packet;
	struct ipv4 *outer = (void *)(packet + 14), *ipv4;
	struct key key = {};
	struct value *value;

	if (length < 14)
		return give_up(std);
	if (ethernet->type != be16(0x0800))
		return pass(std);
	if (length < 34)
		return give_up(std);
	if ((outer->version_ihl & 15) != 5 || outer->offset & be16(0x1fff))
		return pass(std);
	if (outer->protocol == 47) {
		u32 gre;

		if (length < 38)
			return give_up(std);
		gre = be32(*(u32 *)(packet + 34));
		/* Neither checksum nor sequence number, version 0, IPv4 payload. */
		if ((gre & 0x9007ffff) != 0x0800)
			return give_up(std);
		less = 24;
		key.is_gre = 1;
		if (gre & 0x20000000) {
			if (length < 42)
				return give_up(std);
			key.key = be32(*(u32 *)(packet + 38));
			less = 28;
		}
	} else if (outer->protocol != 4) {
		return pass(std);
	}
	if (length < 34 + less)
		return give_up(std);
	ipv4 = (void *)(packet + 14 + less);
	key.src = be32(outer->src);
	key.dst = be32(outer->dst);
	value = map_lookup(&c_ends, &key);
	if (!value || value->action == REFUSE)
		return drop(std);
	/* Copy a congestion mark of the outer header to the inner one (RFC 6040 section 4.2). */
	if ((outer->dscp & 3) == 3 && (ipv4->dscp & 3)) {
		u16 old = be16(*(u16 *)ipv4);

		ipv4->dscp |= 3;
		ipv4->checksum = be16(replaced2(be16(ipv4->checksum), old, old | 3));
	}
	move_ethernet(packet + less, packet);
	if (!adjust_head(context, -(int)less))
		return give_up(std);
	return pass(std);
}
