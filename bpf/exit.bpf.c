/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Egress of a port that uses a queueing discipline: redirects packets received on this interface
 * (tc ingress) to the port through its qdisc. XDP itself bypasses all queues, and therefore any
 * rate limit.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 port = 0;

SEC("tc")
int exit_to_port(struct __sk_buff *skb)
{
	return bpf_redirect(port, 0);
}
