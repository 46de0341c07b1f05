/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Correctness test of a data plane under load: a generator of self-describing frames, and receivers
 * that compare each frame byte for byte with its expectations.
 *
 * A frame ends with its proof. The proof, the egress port and the destinations in layers 2 and 3
 * select the expectation. A test that reconfigures the data plane adds the new expectations before
 * the change, and removes the old ones once no such frame may arrive any more.
 */
#include "include/srv6/bytes.h"

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

/* Maximum length of a frame, sent or received. A multiple of 8. */
#define FRAME 320
/* Number of frame kinds. A power of two. */
#define KINDS 16
/* "kaido.pf" */
#define MAGIC 0x6b6169646f2e7066ull

/* The last bytes of each frame. */
struct proof {
	__u64 magic;
	__u32 kind;
	__u32 flow;
};

/* A kind of frame to send. */
struct sample {
	__u32 length;
	__u32 flow_at; /* offset of the 16-bit flow number, in network byte order */
	__u8 bytes[FRAME];
};

struct run {
	__u32 kinds; /* number of samples */
	__u32 flows; /* of each kind, 65536 at most */
	__u32 egress;
	__u32 pad;
};

struct place {
	__u64 dst[2]; /* of the outermost header; IPv4 in the first 4 bytes */
	__u64 station; /* the first 8 bytes of the frame, which start with the next hop's MAC
		        * address */
	__u32 kind;
	__u32 ifindex; /* interface where it was judged */
};

/* The frame expected at a place. */
struct expected {
	__u32 length;
	__u32 flow_at; /* offset of the flow number; 0 if only the proof contains it */
	__u8 bytes[FRAME];
	__u8 mask[FRAME]; /* bits to compare */
};

struct tally {
	__u64 sent;
	__u64 delivered; /* by XDP */
	__u64 by_kernel; /* left the node through the kernel, and end there */
	__u64 wrong;
};

/* A frame as received. */
struct arrived {
	__u32 length;
	__u32 ifindex;
	__u8 bytes[FRAME];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct run);
} runs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KINDS);
	__type(key, __u32);
	__type(value, struct sample);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct place);
	__type(value, struct expected);
} expectations SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KINDS);
	__type(key, __u32);
	__type(value, struct tally);
} tallies SEC(".maps");

/* Number of received frames per kind and expectation: shows which paths are taken. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct place);
	__type(value, __u64);
} ways SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct arrived);
} buffers SEC(".maps");

/* The last mismatch. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct arrived);
} evidence SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} positions SEC(".maps");

/* The frames of BPF_F_TEST_XDP_LIVE_FRAMES are recycled with the contents that the last user left,
 * so each one is rewritten. */
SEC("xdp")
int prove(struct xdp_md *ctx)
{
	__u32 zero = 0;
	const struct run *run = bpf_map_lookup_elem(&runs, &zero);
	__u64 *position = bpf_map_lookup_elem(&positions, &zero);

	if (!run || !position || !run->kinds || !run->flows)
		return XDP_ABORTED;
	struct proof proof = {.magic = MAGIC};

	proof.kind = *position % run->kinds;
	proof.flow = *position / run->kinds % run->flows;
	*position += 1;
	const struct sample *sample = bpf_map_lookup_elem(&samples, &proof.kind);
	struct tally *tally = bpf_map_lookup_elem(&tallies, &proof.kind);

	if (!sample || !tally)
		return XDP_ABORTED;
	__u32 length = sample->length, flow_at = sample->flow_at;
	__be16 flow = bpf_htons(proof.flow);

	if (length > FRAME || length < 64 || flow_at > length - sizeof(flow))
		return XDP_ABORTED;
	int longer = (int)bpf_xdp_get_buff_len(ctx) - (int)length;

	if (longer && bpf_xdp_adjust_head(ctx, longer))
		return XDP_ABORTED;
	if (bpf_xdp_store_bytes(ctx, 0, (void *)sample->bytes, length) ||
	    bpf_xdp_store_bytes(ctx, flow_at, &flow, sizeof(flow)) ||
	    bpf_xdp_store_bytes(ctx, length - sizeof(proof), &proof, sizeof(proof)))
		return XDP_ABORTED;
	tally->sent++;
	return bpf_redirect(run->egress, 0);
}

/* True if the frames are equal under the mask. */
static __always_inline int is_as(const struct arrived *frame, const struct expected *expected)
{
	__u64 differs = 0;

	for (int at = 0; at < FRAME; at += 8) {
		if (at >= (int)expected->length)
			break;
		differs |= (*(const __u64 *)(frame->bytes + at) ^
			    *(const __u64 *)(expected->bytes + at)) &
			   *(const __u64 *)(expected->mask + at);
	}
	return !differs;
}

/* The destination of an untagged frame, as part of its place. */
static __always_inline void set_destination(struct place *place, const struct arrived *frame)
{
	__be16 protocol = *(const __u16 *)(frame->bytes + 12);

	if (protocol == bpf_htons(ETH_P_IPV6)) {
		place->dst[0] = high(frame->bytes + 14 + 24);
		place->dst[1] = low(frame->bytes + 14 + 24);
	} else if (protocol == bpf_htons(ETH_P_IP)) {
		place->dst[0] = load32(frame->bytes + 14 + 16);
	}
}

/* Compares a frame of this test with its expectation. `tally` is that of its kind. */
static __always_inline void judge(struct arrived *frame, const struct proof *proof,
				  struct tally *tally)
{
	struct place place = {
		.station = high(frame->bytes),
		.kind = proof->kind,
		.ifindex = frame->ifindex,
	};
	__u32 zero = 0;

	set_destination(&place, frame);
	const struct expected *expected = bpf_map_lookup_elem(&expectations, &place);

	if (expected && expected->length == frame->length && is_as(frame, expected)) {
		__u32 flow_at = expected->flow_at & 0xff;
		__be16 flow = load16(frame->bytes + flow_at);
		__u64 *way = bpf_map_lookup_elem(&ways, &place);

		if (way)
			__sync_fetch_and_add(way, 1);
		if (!flow_at || flow == bpf_htons(proof->flow))
			return;
	}
	tally->wrong++;
	bpf_map_update_elem(&evidence, &zero, frame, BPF_ANY);
}

SEC("xdp")
int judge_frame(struct xdp_md *ctx)
{
	__u32 zero = 0, length = bpf_xdp_get_buff_len(ctx);
	struct arrived *frame = bpf_map_lookup_elem(&buffers, &zero);
	struct proof proof;

	if (!frame || length < 64 || length > FRAME)
		return XDP_DROP;
	if (bpf_xdp_load_bytes(ctx, length - sizeof(proof), &proof, sizeof(proof)) ||
	    proof.magic != MAGIC || bpf_xdp_load_bytes(ctx, 0, frame->bytes, length))
		return XDP_DROP;
	struct tally *tally = bpf_map_lookup_elem(&tallies, &proof.kind);

	if (!tally)
		return XDP_DROP;
	frame->length = length;
	frame->ifindex = ctx->ingress_ifindex;
	tally->delivered++;
	judge(frame, &proof, tally);
	return XDP_DROP;
}

/* Judges packets that the kernel sends, where they leave the node. */
SEC("tc")
int judge_packet(struct __sk_buff *skb)
{
	__u32 zero = 0, length = skb->len;
	struct arrived *frame = bpf_map_lookup_elem(&buffers, &zero);
	struct proof proof;

	if (!frame || length < 64 || length > FRAME)
		return TC_ACT_OK;
	if (bpf_skb_load_bytes(skb, length - sizeof(proof), &proof, sizeof(proof)) ||
	    proof.magic != MAGIC || bpf_skb_load_bytes(skb, 0, frame->bytes, length))
		return TC_ACT_OK;
	struct tally *tally = bpf_map_lookup_elem(&tallies, &proof.kind);

	if (!tally)
		return TC_ACT_OK;
	frame->length = length;
	frame->ifindex = skb->ifindex;
	tally->by_kernel++;
	judge(frame, &proof, tally);
	return TC_ACT_SHOT;
}
