/* Hand-written counterpart of crates/p4/tests/programs/gtpu.p4. */
#include "ubpf.h"

struct uplink_key {
	u32 src, teid;
};

struct uplink {
	u32 action;
};

enum { DECAP, REFUSE_UPLINK };

struct downlink {
	u32 action, teid, from, to;
};

enum { ENCAP, REFUSE_DOWNLINK };

MAP(c_uplink, HASH, sizeof(struct uplink_key), sizeof(struct uplink), 1024);
MAP(c_downlink, HASH, 4, sizeof(struct downlink), 1024);

static always_inline u64 from_station(void *context, struct standard_metadata *std, u8 *packet,
				      u32 length)
{
	struct ipv4 *outer = (void *)(packet + 14);
	struct udp *udp = (void *)(packet + 34);
	struct uplink_key key;
	struct uplink *uplink;
	u32 at = 50;
	u8 flags;

	if (length < 42 || (outer->version_ihl & 15) != 5 || outer->protocol != 17 ||
	    udp->dst != be16(2152) || length < 50)
		return give_up(std);
	flags = packet[42];
	if (flags >> 4 != 3)
		return give_up(std);
	/* Echo requests and other control messages are for the stack. */
	if (packet[43] != 255)
		return pass(std);
	key.teid = be32(*(u32 *)(packet + 46));
	if (flags & 7) {
		if (length < 54)
			return give_up(std);
		at = 54;
		if (flags & 4 && packet[53]) {
			u8 next = 1;

			/* At most two extension headers. */
#pragma clang loop unroll(full)
			for (int count = 0; count < 2; count++) {
				u32 bytes;

				if (!next)
					continue;
				if (at + 1 > length)
					return give_up(std);
				bytes = packet[at] * 4;
				if (!bytes || bytes > 32 || at + bytes > length)
					return give_up(std);
				at += bytes;
				next = packet[at - 1];
			}
			if (next)
				return give_up(std);
		}
	}
	if (at + 20 > length)
		return give_up(std);
	key.src = be32(*(u32 *)(packet + at + 12));
	uplink = map_lookup(&c_uplink, &key);
	if (!uplink || uplink->action == REFUSE_UPLINK)
		return drop(std);
	move_ethernet(packet + at - 14, packet);
	if (!adjust_head(context, 14 - (int)at))
		return give_up(std);
	return redirect(std, 1);
}

u64 entry(void *context, struct standard_metadata *std)
{
	u8 *packet = packet_data(context);
	u32 length = std->packet_length, key;
	struct ethernet *ethernet = (void *)packet;
	struct ipv4 *ipv4 = (void *)(packet + 14), *outer;
	struct downlink *downlink;
	u16 inside, sum;
	struct udp *udp;

	if (length < 14)
		return give_up(std);
	if (ethernet->type != be16(0x0800))
		return pass(std);
	if (std->input_port == 0)
		return from_station(context, std, packet, length);
	if (length < 34)
		return give_up(std);
	key = be32(ipv4->dst);
	downlink = map_lookup(&c_downlink, &key);
	if (!downlink || downlink->action == REFUSE_DOWNLINK)
		return drop(std);
	packet = adjust_head(context, 36);
	if (!packet)
		return give_up(std);
	move_ethernet(packet, packet + 36);
	outer = (void *)(packet + 14);
	udp = (void *)(packet + 34);
	ipv4 = (void *)(packet + 50);
	inside = be16(ipv4->length);
	sum = replaced2(be16(ipv4->checksum), inside, inside + 36);
	sum = replaced2(sum, be16(ipv4->id), 1);
	sum = replaced2(sum, ipv4->ttl << 8 | ipv4->protocol, 0x4011);
	sum = replaced4(sum, be32(ipv4->src), downlink->from);
	sum = replaced4(sum, key, downlink->to);
	*(u16 *)outer = *(u16 *)ipv4;
	outer->length = be16(inside + 36);
	outer->id = be16(1);
	outer->offset = ipv4->offset;
	outer->ttl = 64;
	outer->protocol = 17;
	outer->checksum = be16(sum);
	outer->src = be32(downlink->from);
	outer->dst = be32(downlink->to);
	udp->src = udp->dst = be16(2152);
	udp->length = be16(inside + 16);
	udp->checksum = 0;
	*(u32 *)(packet + 42) = be32(0x30ffu << 16 | inside);
	*(u32 *)(packet + 46) = be32(downlink->teid);
	return redirect(std, 0);
}
