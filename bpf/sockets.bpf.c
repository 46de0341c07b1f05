/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * An interface between which and its users another process stands (`kaido p4 attach`). Received
 * packets go to the AF_XDP socket of their queue, and no other packets are sent or received: those of
 * the sockets pass neither queueing disciplines nor tc.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

/* Maximum number of queues with a socket. */
#define QUEUES 64

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, QUEUES);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

/* Without frags: veth devices then send packets of one buffer only. A packet of a queue without a
 * socket is dropped, since the kernel must not get it unjudged. */
SEC("xdp")
int to_socket(struct xdp_md *ctx)
{
	return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_DROP);
}

/* Egress: nothing leaves beside the sockets. Ingress: drops frames that a veth receives while it is set
 * up, before its program runs, and those on a stacked interface that generic XDP does not see
 * (skb->redirected). */
SEC("tc")
int only_sockets(struct __sk_buff *skb)
{
	return TC_ACT_SHOT;
}
