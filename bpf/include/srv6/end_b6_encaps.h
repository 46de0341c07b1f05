/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * End.B6.Encaps and End.B6.Encaps.Red (RFC 8986 sections 4.13 and 4.14): advances the packet to the
 * next segment of its own list and steers it into the policy bound to the SID. The packet is
 * counted for the SID.
 *
 * end_b6_encaps() returns an XDP action. It is not inline: few packets take this path, and the
 * others should not pay for it. For the same reason it does not take the frame as an argument,
 * which would force the frame into memory for all packets.
 */
#ifndef KAIDO_SRV6_END_B6_ENCAPS_H
#define KAIDO_SRV6_END_B6_ENCAPS_H

#include "encapsulate.h"
#include "srh.h"

/* Returns the SRH's next segment, or null with `*verdict` set. */
static __always_inline const void *next_segment(const struct frame *frame, const struct sid *sid,
					  const struct ipv6hdr *ip, int *verdict)
{
	const struct srh *srh = (const void *)(ip + 1);
	enum reason reason = REASON_NO_SRH;
	enum srh_found found = find_srh(frame, ip, &reason);

	if (found == SRH_GOOD && srh->segments_left)
		return segment_of(srh);
	if (found == SRH_GOOD)
		reason = REASON_LAST_SEGMENT;
	*verdict = found == SRH_OTHER ? leave_srh(frame, reason, is_in_kernel(sid)) :
					leave(frame, reason, is_in_kernel(sid));
	return 0;
}

/* `length`: of the packet, without padding. */
static __noinline int end_b6_encaps(struct xdp_md *ctx, const struct port *port,
				    const struct sid *sid, __u32 length)
{
	__u32 zero = 0, number = sid->params.policy;
	struct frame whole = {
		.ctx = ctx,
		.control = bpf_map_lookup_elem(&control, &zero),
		.port = port,
		.row = bpf_get_smp_processor_id(),
		.l3 = ETH_HLEN,
		.length = length,
	};
	const struct frame *frame = &whole;
	const struct ipv6hdr *ip = data_of(frame) + ETH_HLEN;
	int verdict = XDP_DROP;

	if (!frame->control)
		return XDP_PASS;
	if ((void *)(ip + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	const void *segment = next_segment(frame, sid, ip, &verdict);

	if (!segment)
		return verdict;
	if (segment + 16 > end_of(frame))
		return leave(frame, REASON_TRUNCATED, is_in_kernel(sid));
	if (ip->hop_limit <= 1)
		return leave(frame, REASON_HOP_LIMIT, is_in_kernel(sid));
	__u64 dst0 = high(segment), dst1 = low(segment);
	struct inner inner = {
		.at = ETH_HLEN,
		.length = frame->length,
		.protocol = IPPROTO_IPV6,
		.hop_limit = ip->hop_limit - 1,
		.traffic_class = bpf_ntohs(*(__be16 *)ip) >> 4,
		.hash = mix(high(&ip->saddr) ^ low(&ip->saddr), *(__be32 *)ip & FLOW_MASK,
			    dst0 ^ dst1),
	};
	const struct policy *policy = bpf_map_lookup_elem(&policies, &number);
	const struct outer *outer = policy ? list_of(policy, inner.hash, OUTER_ENCAPS) : 0;

	if (!outer)
		return leave(frame, REASON_NO_POLICY, is_in_kernel(sid));
	verdict = encapsulate(frame, outer, &inner, sid->counter, is_in_kernel(sid), 0);
	if (verdict != XDP_REDIRECT)
		return verdict;
	/* No step can fail any more: update the inner header, which follows the outer one. */
	__u32 front = bpf_xdp_get_buff_len(frame->ctx) - frame->length;

	if (front > ETH_HLEN + 8 + LIMIT_OUTER)
		return drop(frame, REASON_TRUNCATED);
	struct ipv6hdr *to = data_of(frame) + front;
	struct srh *srh = (void *)(to + 1);

	if ((void *)(srh + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	srh->segments_left--;
	((__u64 *)&to->daddr)[0] = dst0;
	((__u64 *)&to->daddr)[1] = dst1;
	return verdict;
}

#endif
