/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The way out of a port whose packets wait in a queue: what arrives at the interface that this is
 * attached to (tc ingress) is handed to the port, through its queueing discipline. XDP itself
 * sends past every queue, and so past a rate.
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
