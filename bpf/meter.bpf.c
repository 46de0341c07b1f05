/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Counts the packets of applications as they leave a headend, before and after they are steered.
 *
 * It counts at tc egress and not in netfilter because only there does a packet have the length that
 * the queues of links see: wire_len includes the headers of every segment of a GSO packet and
 * the outer headers of SRv6. /
 */
#include "include/abi.h"
#include "include/parsing.h"

#include <linux/pkt_cls.h>

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, METER_FLOWS);
	__type(key, __u32);
	__type(value, struct meter_flow);
} meter_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, METER_SLOTS);
	__type(key, __u32);
	__type(value, struct meter_count);
} meter_counts SEC(".maps");

static __always_inline int same_network(const __be32 *address, const __be32 *network,
					const __be32 *mask)
{
	return (address[0] & mask[0]) == network[0] && (address[1] & mask[1]) == network[1] &&
	       (address[2] & mask[2]) == network[2] && (address[3] & mask[3]) == network[3];
}

static __always_inline int matches(const struct packet *packet, const struct meter_flow *flow)
{
	return packet->version == flow->version &&
	       (!flow->protocol || packet->protocol == flow->protocol) &&
	       (flow->dscp == METER_ANY_DSCP || packet->dscp == flow->dscp) &&
	       packet->src_port >= flow->src_port_first && packet->src_port <= flow->src_port_last &&
	       packet->dst_port >= flow->dst_port_first && packet->dst_port <= flow->dst_port_last &&
	       same_network(packet->dst, flow->dst, flow->dst_mask) &&
	       same_network(packet->src, flow->src, flow->src_mask);
}

/* A packet, and the result of the search for its flow. */
struct search {
	struct packet packet;
	__s32 slot; /* of the first flow that matches; -1 for none */
};

/* One step of bpf_loop(): returns 1 to end it. A plain loop over all flows would exceed the
 * verifier's limits. */
static long try_flow(__u32 at, struct search *search)
{
	const struct meter_flow *flow = bpf_map_lookup_elem(&meter_flows, &at);

	if (!flow || !flow->version)
		return 1;
	if (!matches(&search->packet, flow))
		return 0;
	search->slot = flow->slot;
	return 1;
}

SEC("tc")
int meter(struct __sk_buff *skb)
{
	struct search search = {.slot = -1};

	if (parse_packet(skb, &search.packet))
		return TC_ACT_UNSPEC;
	bpf_loop(METER_FLOWS, try_flow, &search, 0);
	__u32 slot = search.slot;
	struct meter_count *count = bpf_map_lookup_elem(&meter_counts, &slot);

	if (count) {
		count->packets += skb->gso_segs ? skb->gso_segs : 1;
		count->bytes += skb->wire_len;
	}
	return TC_ACT_UNSPEC;
}
