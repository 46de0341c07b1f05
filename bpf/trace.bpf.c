/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Packet tracing. This program runs before the data plane while a trace is active: it copies the
 * selected packets to user space and passes every packet on to the data plane's program by tail
 * call. The data plane does not know about it and has no overhead while no trace is active.
 */
#include "include/srv6/bytes.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trace_filter);
} filter SEC(".maps");

/* The data plane's program. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} next SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} traced SEC(".maps");

/* Emits the type into BTF for user space. */
const volatile struct traced_packet *_traced_packet;

static __always_inline int within(const __u64 address[2], const struct trace_prefix *prefix)
{
	return !((address[0] ^ prefix->address[0]) & prefix->mask[0]) &&
	       !((address[1] ^ prefix->address[1]) & prefix->mask[1]);
}

/* True if the filter selects the packet. */
static __always_inline int matches(struct xdp_md *ctx, const struct trace_filter *wanted)
{
	const void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 source[2] = {}, destination[2] = {};
	__u32 at = ETH_HLEN;

	if (data + ETH_HLEN + 8 > end)
		return 0;
	__be16 type = ethertype_of(data);
	__u16 tag = 0;

	if (wanted->ifindex && wanted->ifindex != ctx->ingress_ifindex)
		return 0;
	if (is_vlan(type)) {
		tag = bpf_ntohs(load16(data + ETH_HLEN)) & 0xfff;
		type = load16(data + ETH_HLEN + 2);
		at += 4;
		if (type == bpf_htons(ETH_P_8021Q)) {
			type = load16(data + ETH_HLEN + 6);
			at += 4;
		}
	}
	if (wanted->vlan && wanted->vlan != tag)
		return 0;
	if (!wanted->family)
		return 1;
	const void *packet = data + at;

	if (type == bpf_htons(ETH_P_IP)) {
		const struct iphdr *ip = packet;

		if (wanted->family != 4 || (void *)(ip + 1) > end)
			return 0;
		source[0] = ip->saddr;
		destination[0] = ip->daddr;
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		const struct ipv6hdr *ip = packet;

		if (wanted->family != 6 || (void *)(ip + 1) > end)
			return 0;
		source[0] = high(&ip->saddr);
		source[1] = low(&ip->saddr);
		destination[0] = high(&ip->daddr);
		destination[1] = low(&ip->daddr);
	} else {
		return 0;
	}
	return within(source, &wanted->source) && within(destination, &wanted->destination);
}

/* Returns 1 if the packet was copied to user space, otherwise 0. */
static __always_inline int copy(struct xdp_md *ctx)
{
	struct traced_packet *packet = bpf_ringbuf_reserve(&traced, sizeof(*packet), 0);
	__u32 length = bpf_xdp_get_buff_len(ctx);
	__u32 copied = length < sizeof(packet->bytes) ? length : sizeof(packet->bytes);

	if (!packet)
		return 0;
	packet->at_ns = bpf_ktime_get_ns();
	packet->ifindex = ctx->ingress_ifindex;
	packet->length = length;
	/* The compiler knows this bound, but the verifier must see the check here. */
	barrier_var(copied);
	int fits = copied <= sizeof(packet->bytes);

	/* Two separate checks: the Linux 6.1 verifier does not follow a single one of the
	 * difference. */
	if (fits) {
		barrier_var(copied);
		fits = copied >= ETH_HLEN && !bpf_xdp_load_bytes(ctx, 0, packet->bytes, copied);
	}
	if (!fits) {
		bpf_ringbuf_discard(packet, 0);
		return 0;
	}
	bpf_ringbuf_submit(packet, 0);
	return 1;
}

SEC("xdp.frags")
int trace(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct trace_filter *wanted = bpf_map_lookup_elem(&filter, &zero);

	/* Several CPUs may each exceed the limit by one. User space enforces it. */
	if (wanted && wanted->left > 0 && matches(ctx, wanted) && copy(ctx))
		__sync_fetch_and_add(&wanted->left, -1);
	bpf_tail_call(ctx, &next, 0);
	/* Without the data plane, the kernel gets the packet. */
	return XDP_PASS;
}
