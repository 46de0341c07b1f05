/* Hand-written counterpart of crates/p4/tests/programs/nat.p4. */
#include "ubpf.h"

struct key {
	u32 address;
	u16 port;
	u8 protocol, zero;
};

struct value {
	u32 action, new;
	u16 to, zero;
};

enum { CHANGE, REFUSE };

MAP(c_outwards, HASH, sizeof(struct key), sizeof(struct value), 1024);
MAP(c_inwards, HASH, sizeof(struct key), sizeof(struct value), 1024);

u64 entry(void *context, struct standard_metadata *std)
{
	u8 *packet = packet_data(context);
	u32 length = std->packet_length, address;
	struct ethernet *ethernet = (void *)packet;
	struct ipv4 *ipv4 = (void *)(packet + 14);
	u16 *ports = (void *)(packet + 34), *sum, port;
	int outwards = std->input_port == 0;
	struct key key = {};
	struct value *value;

	if (length < 14)
		return give_up(std);
	if (ethernet->type != be16(0x0800))
		return drop(std);
	if (length < 34)
		return give_up(std);
	if ((ipv4->version_ihl & 15) != 5)
		return drop(std);
	key.protocol = ipv4->protocol;
	if (key.protocol == 6) {
		if (length < 54)
			return give_up(std);
		sum = (void *)(packet + 50);
	} else if (key.protocol == 17) {
		if (length < 42)
			return give_up(std);
		sum = (void *)(packet + 40);
	} else {
		return drop(std);
	}
	if (ipv4->ttl <= 1)
		return drop(std);
	address = key.address = be32(outwards ? ipv4->src : ipv4->dst);
	port = key.port = be16(ports[!outwards]);
	value = outwards ? map_lookup(&c_outwards, &key) : map_lookup(&c_inwards, &key);
	if (!value || value->action == REFUSE) {
		std->output_port = outwards;
		return drop(std);
	}
	ipv4->checksum = be16(replaced4(be16(ipv4->checksum), address, value->new));
	if (key.protocol == 6 || *sum != 0) {
		u16 new = replaced4(be16(*sum), address, value->new);

		new = replaced2(new, port, value->to);
		/* In UDP, zero means that there is no checksum (RFC 768). */
		if (key.protocol == 17 && new == 0)
			new = 0xffff;
		*sum = be16(new);
	}
	ports[!outwards] = be16(value->to);
	if (outwards)
		ipv4->src = be32(value->new);
	else
		ipv4->dst = be32(value->new);
	ipv4->ttl -= 1;
	ipv4->checksum = be16(replaced2(be16(ipv4->checksum), (ipv4->ttl + 1) << 8, ipv4->ttl << 8));
	return redirect(std, outwards);
}
