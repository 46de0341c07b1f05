/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Counts applications' packets as they leave a headend, before and after they are steered.
 *
 * It counts at tc egress and not in netfilter because only there a packet's length is the one
 * that the links' queues see: wire_len includes the headers of every segment of a GSO super-frame
 * and the outer headers of SRv6.
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

SEC("tc")
int meter(struct __sk_buff *skb)
{
	struct packet packet = {};

	if (parse_packet(skb, &packet))
		return TC_ACT_UNSPEC;
	for (__u32 at = 0; at < METER_FLOWS; at++) {
		__u32 key = at;
		const struct meter_flow *flow = bpf_map_lookup_elem(&meter_flows, &key);

		if (!flow || !flow->version)
			break;
		if (!matches(&packet, flow))
			continue;
		__u32 slot = flow->slot;
		struct meter_count *count = bpf_map_lookup_elem(&meter_counts, &slot);

		if (count) {
			count->packets += skb->gso_segs ? skb->gso_segs : 1;
			count->bytes += skb->wire_len;
		}
		break;
	}
	return TC_ACT_UNSPEC;
}
