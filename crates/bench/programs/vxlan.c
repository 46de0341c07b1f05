/* Hand-written counterpart of crates/p4/tests/programs/vxlan.p4. */
#include "ubpf.h"

struct address {
	u32 action, zero, vni, from, to, zero2;
	u64 gateway;
};

enum { WRAP, REFUSE_ADDRESS };

struct network_key {
	u32 src, vni;
};

struct network {
	u32 action;
};

enum { UNWRAP, REFUSE };

MAP(c_addresses, HASH, 8, sizeof(struct address), 1024);
MAP(c_networks, HASH, sizeof(struct network_key), sizeof(struct network), 1024);

static always_inline u64 wrap(void *context, struct standard_metadata *std, struct address *address,
			      u32 flow)
{
	u16 inside = std->packet_length;
	struct ethernet *ethernet;
	struct ipv4 *ipv4;
	struct udp *udp;
	u8 *packet = adjust_head(context, 50);

	if (!packet)
		return give_up(std);
	ethernet = (void *)packet;
	ipv4 = (void *)(packet + 14);
	udp = (void *)(packet + 34);
	/* MAC addresses: destination gateway, source 02:00:00:00:00:fe. EtherType IPv4. */
	*(u64 *)packet = be64(address->gateway << 16 | 0x0200);
	*(u32 *)(packet + 8) = be32(0xfe);
	ethernet->type = be16(0x0800);
	ipv4->version_ihl = 0x45;
	ipv4->dscp = 0;
	ipv4->length = be16(inside + 36);
	ipv4->id = 0;
	ipv4->offset = be16(0x4000);
	ipv4->ttl = 64;
	ipv4->protocol = 17;
	ipv4->src = be32(address->from);
	ipv4->dst = be32(address->to);
	/* The constant part of the header is summed up in advance. */
	u16 sum = replaced2((u16)~(0x4500 + 0x4000 + 0x4011), 0, inside + 36);

	sum = replaced4(sum, 0, address->from);
	ipv4->checksum = be16(replaced4(sum, 0, address->to));
	udp->src = be16(0xc000 | (flow & 0x3fff));
	udp->dst = be16(4789);
	udp->length = be16(inside + 16);
	udp->checksum = 0;
	*(u64 *)(packet + 42) = be64(0x08ull << 56 | (u64)address->vni << 8);
	return redirect(std, 1);
}

u64 entry(void *context, struct standard_metadata *std)
{
	u8 *packet = packet_data(context), bytes[6];
	u32 length = std->packet_length;
	struct address *address;
	u64 key, mac;

	if (std->input_port != 0) {
		struct ethernet *ethernet = (void *)packet;
		struct ipv4 *ipv4 = (void *)(packet + 14);
		struct udp *udp = (void *)(packet + 34);
		struct network_key network_key;
		struct network *network;
		u64 vxlan;

		/* Give up on packets that are not VXLAN. */
		if (length < 64 || ethernet->type != be16(0x0800) || (ipv4->version_ihl & 15) != 5 ||
		    ipv4->offset & be16(0x1fff) || ipv4->protocol != 17 || udp->dst != be16(4789))
			return give_up(std);
		vxlan = be64(*(u64 *)(packet + 42));
		if (!(vxlan & 0x08ull << 56))
			return give_up(std);
		network_key.vni = vxlan >> 8 & 0xffffff;
		network_key.src = be32(ipv4->src);
		network = map_lookup(&c_networks, &network_key);
		if (!network || network->action == REFUSE)
			return drop(std);
		if (!adjust_head(context, -50))
			return give_up(std);
		return redirect(std, 0);
	}
	if (length < 14)
		return give_up(std);
	mac = *(u64 *)packet;
	key = be64(mac) >> 16;
	address = map_lookup(&c_addresses, &key);
	if (!address || address->action == REFUSE_ADDRESS)
		return drop(std);
	*(u32 *)bytes = mac;
	*(u16 *)(bytes + 4) = mac >> 32;
	return wrap(context, std, address, hash(bytes, sizeof(bytes)));
}
