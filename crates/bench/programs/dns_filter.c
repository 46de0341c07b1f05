/* Hand-written counterpart of crates/p4/tests/programs/dns_filter.p4. */
#include "ubpf.h"

/* The last 15 letters of each of the last three labels of a name, and the type of the question. */
struct key {
	u64 top[2], second[2], third[2], type;
};

struct value {
	u32 action;
};

enum { ALLOW, REFUSE, LOSE };

#define LONGEST 64

MAP(c_names, TERNARY, sizeof(struct key), sizeof(struct value), 1024);

/* Turns the question into a response with the code REFUSED and sends it back. */
static always_inline u64 refuse(struct standard_metadata *std, u8 *packet)
{
	struct ipv4 *ipv4 = (void *)(packet + 14);
	struct udp *udp = (void *)(packet + 34);
	u16 *flags = (void *)(packet + 44), old = be16(*flags), new = (old & 0x7ff0) | 0x8005;
	u64 first = *(u64 *)packet;
	u32 second = *(u32 *)(packet + 8), address = ipv4->src;
	u16 port = udp->src;

	*flags = be16(new);
	if (udp->checksum) {
		u16 sum = replaced2(be16(udp->checksum), old, new);

		udp->checksum = be16(sum ? sum : 0xffff);
	}
	/* Swap the two MAC addresses of six bytes each. */
	*(u64 *)packet = first >> 48 | (u64)second << 16 | first << 48;
	*(u32 *)(packet + 8) = first >> 16;
	ipv4->src = ipv4->dst;
	ipv4->dst = address;
	udp->src = udp->dst;
	udp->dst = port;
	return pass(std);
}

u64 entry(void *context, struct standard_metadata *std)
{
	u8 *packet = packet_data(context);
	u32 length = std->packet_length, at = 54, read = 0;
	struct ethernet *ethernet = (void *)packet;
	struct ipv4 *ipv4 = (void *)(packet + 14);
	struct udp *udp = (void *)(packet + 34);
	struct key key = {};
	struct value *value;

	if (length < 14)
		return give_up(std);
	if (ethernet->type != be16(0x0800))
		return pass(std);
	if (length < 34)
		return give_up(std);
	if ((ipv4->version_ihl & 15) != 5 || ipv4->offset & be16(0x1fff) || ipv4->protocol != 17)
		return pass(std);
	if (length < 42)
		return give_up(std);
	if (udp->dst != be16(53))
		return pass(std);
	if (length < 54 || packet[44] & 0x80 || *(u16 *)(packet + 46) != be16(1))
		return give_up(std);
	for (;;) {
		u32 left;

		if (at >= length)
			return give_up(std);
		left = packet[at];
		if (left == 0)
			break;
		/* Compression pointers are not accepted in a question (RFC 1035 section 4.1.4). */
		if (left > 63 || read + 1 + left > LONGEST || at + 1 + left > length)
			return give_up(std);
		read += 1 + left;
		at++;
		key.third[0] = key.second[0], key.third[1] = key.second[1];
		key.second[0] = key.top[0], key.second[1] = key.top[1];
		key.top[0] = key.top[1] = 0;
		for (; left; left--) {
			u8 letter = packet[at++];

			if (letter >= 'A' && letter <= 'Z')
				letter |= 0x20;
			key.top[1] = (key.top[1] << 8 | key.top[0] >> 56) & 0xffffffffffffff;
			key.top[0] = key.top[0] << 8 | letter;
		}
	}
	if (at + 5 > length)
		return give_up(std);
	key.type = be16(*(u16 *)(packet + at + 1));
	value = map_lookup(&c_names, &key);
	if (!value || value->action == ALLOW)
		return pass(std);
	if (value->action == LOSE)
		return drop(std);
	return refuse(std, packet);
}
