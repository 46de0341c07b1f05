/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Benchmark programs: a generator, a sink, a runner that repeats a program on the same packet, and
 * a simple program for comparison.
 */
#include "include/srv6/srh.h"

#include <linux/pkt_cls.h>

char LICENSE[] SEC("license") = "GPL";

/* Size of a template's head. The rest of a frame is never modified. */
#define HEAD 142

#define AF_INET6 10

struct template {
	__u32 length; /* of the whole frame */
	__u32 head;   /* bytes of it given in `bytes`: 14, or 18 with a tag, plus a multiple of 8 */
	__u32 egress; /* interface that generate() sends on */
	__u32 flows;  /* number of flows; consecutive frames belong to consecutive flows */
	__u32 step;   /* increment of the 32 bits at `flow_at` from flow to flow */
	__u32 flow_at;
	__u32 checksum_at; /* of an IPv4 header whose destination is the field at `flow_at`; 0
			    * for none */
	__u8 bytes[HEAD];
	__u8 stamped; /* nonzero if the last 8 bytes of a frame are its transmit time */
	__u8 tagged;  /* nonzero if layer 3 begins after a VLAN tag */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct template);
} template SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} received SEC(".maps");

/* Delays of stamped frames in ns, and the number of these frames. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << 17);
	__type(key, __u32);
	__type(value, __u32);
} delays SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} delayed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} position SEC(".maps");

/* Clock of generate_paced(). */
struct pace {
	__u64 interval; /* between groups, in ns with PACE_SHIFT fractional bits */
	__u64 group;    /* number of frames sent at once */
	__u64 sent;
	__u64 first; /* time of the first group, in ns */
	__u64 last;  /* time of the last group */
	__u64 due;   /* time of the next group, relative to the first, in the unit of `interval` */
};

#define PACE_SHIFT 10

/* Maximum number of clock reads while a group waits: a tenth of a second or more. */
#define PACE_LONGEST (1 << 22)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pace);
} pace SEC(".maps");

/* The SID of plain_end(). */
const volatile __u64 plain_sid[2] = {};

/* Copies words from offset `start` on. */
static __always_inline int write_words(void *to, const void *end, const struct template *from, int start)
{
	const void *bytes = from->bytes;

	for (int at = start; at + 8 <= HEAD; at += 8) {
		if (at + 8 > from->head)
			break;
		if (to + at + 8 > end)
			return -1;
		*(__u64 *)(to + at) = *(const __u64 *)(bytes + at);
	}
	return 0;
}

/* Copies the template's head over the frame's head, in units of the sizes in which headers are
 * read: a load that spans two stores would wait for both, which does not happen with packets from a
 * wire. */
static __always_inline int write_head(struct xdp_md *ctx, const struct template *from)
{
	void *to = (void *)(long)ctx->data;
	const void *end = (void *)(long)ctx->data_end;
	const void *bytes = from->bytes;

	if (to + ETH_HLEN > end)
		return -1;
	*(__u64 *)to = *(const __u64 *)bytes;
	*(__u32 *)(to + 8) = *(const __u32 *)(bytes + 8);
	if (!from->tagged) {
		*(__u16 *)(to + 12) = *(const __u16 *)(bytes + 12);
		return write_words(to, end, from, ETH_HLEN);
	}
	if (to + 26 > end)
		return -1;
	/* The program reads the tag as a whole, and fields of the IPv6 header behind it. */
	*(__u64 *)(to + 12) = *(const __u64 *)(bytes + 12);
	*(__u16 *)(to + 20) = *(const __u16 *)(bytes + 20);
	*(__u32 *)(to + 22) = *(const __u32 *)(bytes + 22);
	return write_words(to, end, from, 26);
}

/* Changes the frame to the next flow. */
static __always_inline int next_flow(struct xdp_md *ctx, const struct template *from)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, at = from->flow_at, sum_at = from->checksum_at;
	__u32 *flow = bpf_map_lookup_elem(&position, &zero);

	if (!flow)
		return -1;
	*flow = *flow + 1 < from->flows ? *flow + 1 : 0;
	if (at > HEAD || sum_at > HEAD || data + at + 4 > end)
		return -1;
	__be32 *counted = data + at;
	__be32 before = *counted;
	__be32 after = bpf_htonl(bpf_ntohl(before) + *flow * from->step);

	*counted = after;
	if (!sum_at)
		return 0;
	__be16 *check = data + sum_at;

	if ((void *)(check + 1) > end)
		return -1;
	/* RFC 1624, equation 3. */
	__u64 sum = (__u16)~*check + (__u64)(__u16)~before + (__u16)(~before >> 16) +
		    (__u16)after + (after >> 16);

	sum = (sum & 0xffff) + (sum >> 16);
	*check = ~(__u16)(sum + (sum >> 16));
	return 0;
}

/* Restores the packet, or makes it one of the next flow, then runs the program under test. */
SEC("xdp.frags")
int restore(struct xdp_md *ctx)
{
	__u32 zero = 0;
	const struct template *from = bpf_map_lookup_elem(&template, &zero);

	if (!from)
		return XDP_ABORTED;
	int longer = (int)(ctx->data_end - ctx->data) - (int)from->length;

	if (longer && bpf_xdp_adjust_head(ctx, longer))
		return XDP_ABORTED;
	if (write_head(ctx, from))
		return XDP_ABORTED;
	if (from->flows > 1 && next_flow(ctx, from))
		return XDP_ABORTED;
	bpf_tail_call(ctx, &target, 0);
	return XDP_ABORTED;
}

/* Measures the cost of restore() and of the tail call. */
SEC("xdp.frags")
int nothing(struct xdp_md *ctx)
{
	return XDP_PASS;
}

/* A naive End: asks the kernel's routing table for each packet. */
SEC("xdp.frags")
int plain_end(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = data;
	struct ipv6hdr *ip = (void *)(ethernet + 1);
	struct srh *srh = (void *)(ip + 1);
	struct bpf_fib_lookup fib = {.family = AF_INET6};

	if ((void *)(srh + 1) > end || ethernet->h_proto != bpf_htons(ETH_P_IPV6) ||
	    ip->nexthdr != IPPROTO_ROUTING || srh->type != ROUTING_SRH)
		return XDP_PASS;
	if (high(&ip->daddr) != plain_sid[0] || low(&ip->daddr) != plain_sid[1])
		return XDP_PASS;
	if (!srh->segments_left || ip->hop_limit <= 1)
		return XDP_PASS;
	const void *segment = segment_of(srh);

	if (segment + 16 > end)
		return XDP_DROP;
	fib.ifindex = ctx->ingress_ifindex;
	fib.tot_len = bpf_ntohs(ip->payload_len) + sizeof(*ip);
	__builtin_memcpy(fib.ipv6_src, &ip->saddr, 16);
	__builtin_memcpy(fib.ipv6_dst, segment, 16);
	if (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0))
		return XDP_PASS;
	srh->segments_left--;
	ip->hop_limit--;
	__builtin_memcpy(&ip->daddr, segment, 16);
	__builtin_memcpy(ethernet->h_dest, fib.dmac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, fib.smac, ETH_ALEN);
	return bpf_redirect(fib.ifindex, 0);
}

/* The frames of BPF_F_TEST_XDP_LIVE_FRAMES are recycled with the contents that the last user left,
 * so each one is rewritten. */
static __always_inline int send_frame(struct xdp_md *ctx)
{
	__u32 zero = 0;
	const struct template *from = bpf_map_lookup_elem(&template, &zero);
	if (!from)
		return XDP_ABORTED;
	int longer = (int)(ctx->data_end - ctx->data) - (int)from->length;

	if (longer && bpf_xdp_adjust_head(ctx, longer))
		return XDP_ABORTED;
	if (write_head(ctx, from))
		return XDP_ABORTED;
	/* Done before the flow is updated: the Linux 6.1 verifier loses the bounds of spilled
	 * values. */
	if (from->stamped) {
		__u64 now = bpf_ktime_get_ns();

		if (bpf_xdp_store_bytes(ctx, from->length - sizeof(now), &now, sizeof(now)))
			return XDP_ABORTED;
	}
	if (from->flows > 1 && next_flow(ctx, from))
		return XDP_ABORTED;
	return bpf_redirect(from->egress, 0);
}

/* Generates at maximum speed. */
SEC("xdp")
int generate(struct xdp_md *ctx)
{
	return send_frame(ctx);
}

/* State of one group's wait: its deadline, and the last clock value, in ns. */
struct wait {
	__u64 until;
	__u64 now;
};

/* Returns 1 to end the wait. */
static long is_due(__u32 round, struct wait *wait)
{
	wait->now = bpf_ktime_get_ns();
	return wait->now >= wait->until;
}

/* Generates at a fixed rate: no group is sent before its time. A group that is late by a whole
 * interval delays the schedule, since a burst that catches up would overflow a ring that the rate
 * would not. */
SEC("xdp")
int generate_paced(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct pace *at = bpf_map_lookup_elem(&pace, &zero);

	if (!at || !at->group)
		return XDP_ABORTED;
	if (at->sent % at->group == 0) {
		if (!at->sent)
			at->first = bpf_ktime_get_ns();
		struct wait wait = {.until = at->first + (at->due >> PACE_SHIFT)};

		bpf_loop(PACE_LONGEST, is_due, &wait, 0);
		at->last = wait.now;
		__u64 due = at->due + at->interval, now = (wait.now - at->first) << PACE_SHIFT;

		at->due = due > now ? due : now;
	}
	at->sent++;
	return send_frame(ctx);
}

/* Counts and drops received frames. */
SEC("xdp.frags")
int sink(struct xdp_md *ctx)
{
	__u32 zero = 0;
	__u64 *count = bpf_map_lookup_elem(&received, &zero);

	if (count)
		(*count)++;
	return XDP_DROP;
}

/* Records the delay of a stamped frame. */
static __always_inline void take_delay(struct __sk_buff *skb)
{
	__u32 zero = 0;
	__u64 sent = 0, now = bpf_ktime_get_ns();
	__u32 *count = bpf_map_lookup_elem(&delayed, &zero);

	if (!count || bpf_skb_load_bytes(skb, skb->len - sizeof(sent), &sent, sizeof(sent)))
		return;
	__u32 at = *count;
	__u32 *delay = bpf_map_lookup_elem(&delays, &at);

	if (!delay)
		return;
	*delay = now - sent;
	*count = at + 1;
}

/* The same for skbs, which an XDP program would copy first. */
SEC("tc")
int sink_packets(struct __sk_buff *skb)
{
	__u32 zero = 0;
	__u64 *count = bpf_map_lookup_elem(&received, &zero);
	const struct template *from = bpf_map_lookup_elem(&template, &zero);

	if (count)
		(*count)++;
	if (from && from->stamped)
		take_delay(skb);
	return TC_ACT_SHOT;
}
