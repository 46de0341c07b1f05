/* Hand-written counterpart of crates/p4/tests/programs/load_balancer.p4. */
#include "ubpf.h"

struct service_key {
	u32 address;
	u16 port, zero;
};

struct service {
	u32 action, service;
};

enum { SERVE, NO_ACTION };

struct backend_key {
	u32 service;
	u8 bucket, zero[3];
};

struct backend {
	u32 action, zero, address, zero2;
	u64 mac;
	u32 port, zero3;
};

enum { SEND, REFUSE };

MAP(c_services, HASH, sizeof(struct service_key), sizeof(struct service), 1024);
MAP(c_backends, HASH, sizeof(struct backend_key), sizeof(struct backend), 1024);
MAP(c_chosen, ARRAY, 4, 4, 4);

u64 entry(void *context, struct standard_metadata *std)
{
	u8 *packet = packet_data(context);
	u32 length = std->packet_length, index, *chosen;
	struct ethernet *ethernet = (void *)packet;
	struct ipv4 *ipv4 = (void *)(packet + 14);
	u16 *ports = (void *)(packet + 34), *sum = (void *)(packet + 50);
	struct service_key service_key = {};
	struct backend_key key = {};
	struct service *service;
	struct backend *backend;
	u32 old, new;
	u8 flow[7];

	if (length < 14)
		return give_up(std);
	if (ethernet->type != be16(0x0800))
		return pass(std);
	if (length < 34)
		return give_up(std);
	if ((ipv4->version_ihl & 15) != 5 || ipv4->protocol != 6)
		return pass(std);
	if (length < 54)
		return give_up(std);
	service_key.address = be32(ipv4->dst);
	service_key.port = be16(ports[1]);
	service = map_lookup(&c_services, &service_key);
	if (!service || service->action != SERVE)
		return pass(std);
	*(u32 *)flow = ipv4->src;
	*(u16 *)(flow + 4) = ports[0];
	flow[6] = ipv4->protocol;
	key.service = service->service;
	key.bucket = hash(flow, sizeof(flow)) & 3;
	backend = map_lookup(&c_backends, &key);
	if (!backend || backend->action == REFUSE)
		return drop(std);
	old = be32(ipv4->dst);
	new = backend->address;
	ipv4->checksum = be16(replaced4(be16(ipv4->checksum), old, new));
	*sum = be16(replaced4(be16(*sum), old, new));
	ipv4->dst = be32(new);
	/* Write both MAC addresses in two words: destination, and source 02:00:00:00:00:fe. */
	*(u64 *)packet = be64(backend->mac << 16 | 0x0200);
	*(u32 *)(packet + 8) = be32(0xfe);
	index = key.bucket;
	chosen = map_lookup(&c_chosen, &index);
	if (chosen)
		*chosen += 1;
	return redirect(std, backend->port);
}
