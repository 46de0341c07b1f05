/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * XDP program of a port of the SRv6 data plane: endpoint behaviors for local SIDs, and headend
 * behaviors for tenants' packets. All other packets are passed to the kernel unchanged.
 */
#include "include/srv6/answer.h"
#include "include/srv6/decapsulate.h"
#include "include/srv6/dropped.h"
#include "include/srv6/end.h"
#include "include/srv6/end_an_nf.h"
#include "include/srv6/end_b6_encaps.h"
#include "include/srv6/end_m_gtp_d.h"
#include "include/srv6/end_m_gtp_e.h"
#include "include/srv6/headend.h"
#include "include/srv6/insert.h"
#include "include/srv6/port_in.h"
#include "include/srv6/proxy.h"
#include "include/srv6/replace_csid.h"
#include "include/srv6/source.h"
#include "include/srv6/untag.h"
#include "include/srv6/watch.h"

#include <linux/errno.h>

char LICENSE[] SEC("license") = "GPL";

/* References all enumerations, so that they are in the BTF that user space reads. BTF omits an
 * enumeration that no data of the object uses. */
const volatile struct {
	enum limit limit;
	enum reason reason;
	enum behavior behavior;
	enum sid_flag sid_flag;
	enum port_flag port_flag;
	enum tenant_flag tenant_flag;
	enum index index;
	enum hook hook;
	enum function_device function_device;
	enum outer_mode outer_mode;
} vocabulary = {};

/* Handles a packet without a usable next segment. USD (RFC 8986 section 4.16.3) decapsulates an
 * inner packet, which for End.X is IPv6, as its next hop. USP alone (section 4.16.2) is left to the
 * kernel. `at`: offset of the upper-layer header. */
static __always_inline int last_segment(const struct frame *frame, const struct sid *sid,
					__u8 protocol, __u32 at, enum reason otherwise)
{
	int is_inner = protocol == IPPROTO_IPIP || protocol == IPPROTO_IPV6;

	int families = sid->behavior == BEHAVIOR_END_X ? INNER_IPV6 : INNER_IPV4 | INNER_IPV6;

	if (sid->flags & SID_USD && is_inner)
		return decapsulate_packet(frame, sid, protocol, at, families);
	return leave(frame, otherwise, is_in_kernel(sid));
}

/* End, End.X, End.T: the next segment is in the address (NEXT-C-SID) or in the SRH. */
static __always_inline int endpoint_forward(const struct frame *frame, const struct sid *sid,
				   const struct ipv6hdr *ip)
{
	const struct srh *srh = (const void *)(ip + 1);
	enum reason reason = REASON_NO_SRH;

	if (sid->flags & SID_NEXT_CSID) {
		struct bits address = {bpf_be64_to_cpu(high(&ip->daddr)),
				       bpf_be64_to_cpu(low(&ip->daddr))};

		if (next_csid(sid, &address))
			return forward(frame, sid, 0, 0, 0, bpf_cpu_to_be64(address.high),
				       bpf_cpu_to_be64(address.low));
	}
	enum srh_found found = find_srh(frame, ip, &reason);

	if (found == SRH_NONE)
		return last_segment(frame, sid, ip->nexthdr, sizeof(*ip), reason);
	if (found == SRH_OTHER)
		return leave_srh(frame, reason, is_in_kernel(sid));
	int replaces = sid->flags & SID_REPLACE_CSID &&
		       (srh->segments_left || !is_last_csid(frame, sid, srh, index_of(sid, &ip->daddr)));

	if (replaces) {
		int is_last = replace_csid(frame->ctx, sid);

		ip = data_of(frame) + ETH_HLEN;
		srh = (const void *)(ip + 1);
		if (is_last < 0 || (void *)(srh + 1) > end_of(frame))
			return drop(frame, REASON_MALFORMED);
		return forward(frame, sid, srh, is_last, 0, high(&ip->daddr), low(&ip->daddr));
	}
	if (!srh->segments_left)
		return last_segment(frame, sid, srh->next_header,
				    sizeof(*ip) + 8 + 8 * srh->length, REASON_LAST_SEGMENT);
	const void *segment = segment_of(srh);

	if (segment + 16 > end_of(frame))
		return leave(frame, REASON_TRUNCATED, is_in_kernel(sid));
	return forward(frame, sid, srh, srh->segments_left == 1, 1, high(segment), low(segment));
}

/* End.DX* and End.DT*: decapsulation. */
static __always_inline int endpoint_decapsulate(const struct frame *frame, const struct sid *sid,
				   const struct ipv6hdr *ip)
{
	const struct srh *srh = (const void *)(ip + 1);
	__u8 protocol = ip->nexthdr;
	enum reason reason = REASON_NO_SRH;
	__u32 at = sizeof(*ip);
	enum srh_found found = find_srh(frame, ip, &reason);

	/* The kernel decapsulates the payload even if the SRH is inconsistent. */
	if (found == SRH_OTHER)
		return leave(frame, reason, is_in_kernel(sid));
	if (found == SRH_GOOD) {
		if (srh->segments_left)
			return leave(frame, REASON_WRONG_PAYLOAD, is_in_kernel(sid));
		protocol = srh->next_header;
		at += 8 + 8 * srh->length;
	} else if (protocol != IPPROTO_IPIP && protocol != IPPROTO_IPV6 &&
		   protocol != IPPROTO_ETHERNET) {
		return leave(frame, reason, is_in_kernel(sid));
	}
	return decapsulate_payload(frame, sid, protocol, at);
}

/* Handles a packet to a local SID. `ip`: its header, which is complete. */
static __always_inline int endpoint(struct frame *frame, const struct sid *sid,
				    const struct ipv6hdr *ip)
{
	frame->length = sizeof(*ip) + bpf_ntohs(ip->payload_len);
	if (is_special6(high(&ip->saddr)))
		return leave(frame, REASON_IRREGULAR, is_in_kernel(sid));
	/* A jumbogram has its length in a hop-by-hop option (RFC 2675). */
	if (ip->nexthdr == IPPROTO_HOPOPTS)
		return leave(frame, REASON_EXTENSION, is_in_kernel(sid));
	if (ip->version != 6 || fit(frame))
		return drop(frame, REASON_TRUNCATED);
	ip = data_of(frame) + ETH_HLEN;
	if ((void *)(ip + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	if (advances(sid->behavior))
		return endpoint_forward(frame, sid, ip);
	if (decapsulates(sid->behavior))
		return endpoint_decapsulate(frame, sid, ip);
	if (sid->behavior == BEHAVIOR_END_B6_ENCAPS)
		return end_b6_encaps(frame->ctx, frame->port, sid, frame->length);
	if (sid->behavior == BEHAVIOR_END_AN_NF)
		return end_an_nf(frame->ctx, frame->port, sid, frame->length, frame->control);
	if (sid->behavior == BEHAVIOR_END_B6_INSERT)
		return insert_srh(frame->ctx, frame->port, sid, sid->params.policy,
				  ETH_HLEN << 24 | frame->length);
	if (sid->behavior == BEHAVIOR_END_M_GTP6_D)
		return from_gtp(frame->ctx, frame->port, sid, sid->params.policy,
				ETH_HLEN << 24 | frame->length);
	if (is_to_gtp(sid->behavior))
		return into_gtp(frame->ctx, frame->port, sid, frame->length);
	return into_proxy(frame->ctx, frame->port, sid, frame->length);
}

/* Handles a frame that is not addressed to a SID. It may belong to a tenant. */
static __always_inline int headend(struct frame *frame)
{
	__u32 tenant = frame->port->tenant, policy = frame->port->policy;
	const struct attachment *found = 0;
	const void *ethernet = data_of(frame);
	__be16 protocol;

	if (ethernet + ETH_HLEN > end_of(frame))
		return pass(frame, REASON_NO_ENTRY);
	protocol = ethertype_of(ethernet);
	if ((frame->port->tagged || tenant || frame->port->flags & PORT_VLANS) && is_vlan(protocol)) {
		const struct vlan_header *vlan = ethernet + ETH_HLEN;
		struct attachment_key key = {.ifindex = frame->port->ifindex};

		if ((void *)(vlan + 2) > end_of(frame))
			return pass(frame, REASON_NO_ENTRY);
		key.outer = bpf_ntohs(vlan->tag) & 0xfff;
		protocol = vlan->protocol;
		frame->l3 += 4;
		if (protocol == bpf_htons(ETH_P_8021Q)) {
			key.inner = bpf_ntohs(vlan[1].tag) & 0xfff;
			protocol = vlan[1].protocol;
			frame->l3 += 4;
		}
		if (frame->port->tagged)
			found = bpf_map_lookup_elem(&attachments, &key);
		if (found) {
			tenant = found->tenant;
			policy = found->policy;
		}
		/* VLAN 0 is a priority tag (802.1Q). The kernel removes such tags wherever they are,
		 * so that these frames may arrive on the interface of any attachment or VLAN of the SR
		 * domain. H.Encaps.L2 leaves none to the kernel. */
		if ((is_vlan(protocol) || (!key.outer && frame->l3 != ETH_HLEN + 4)) &&
		    !(found && policy))
			return drop(frame, REASON_IRREGULAR);
		/* A frame with only a priority tag belongs to the port's tenant. */
		if (!found && (key.outer || !(tenant | policy)))
			return pass(frame, REASON_NO_ENTRY);
	}
	/* H.Encaps.L2 accepts any destination MAC address. */
	if (policy)
		return headend2(frame, policy);
	if (!is_for(frame->port, ethernet) && !(found && is_for_vlan(found, ethernet)))
		return pass(frame, REASON_OTHER_STATION);
	if (tenant & (TENANT_SOURCES | TENANT_OUTSIDE)) {
		__u32 flags = tenant;

		tenant &= ~(TENANT_SOURCES | TENANT_OUTSIDE);
		if (flags & TENANT_OUTSIDE && is_spoofed(frame->ctx, frame->l3, protocol))
			return drop_foreign(frame, REASON_FOREIGN_SOURCE);
		if (flags & TENANT_SOURCES &&
		    is_foreign(frame->ctx, frame->l3, protocol, tenant))
			return drop_foreign(frame, REASON_TENANT_SOURCE);
	}
	if (!tenant)
		return pass(frame, REASON_NO_ENTRY);
	if (protocol == bpf_htons(ETH_P_IP))
		return headend4(frame, tenant);
	if (protocol == bpf_htons(ETH_P_IPV6))
		return headend6(frame, tenant);
	return pass(frame, REASON_NO_ENTRY);
}

/* Handles a frame, without tags of the SR domain. */
static __always_inline int process(struct frame *frame)
{
	/* Checked first, before any parser state exists that must survive the call. */
	if (frame->port->flags & (PORT_EDGE | PORT_SOURCES) &&
	    drop_refused(frame->ctx, frame->port, frame->control))
		return XDP_DROP;

	const void *ethernet = data_of(frame);
	const struct ipv6hdr *ip = ethernet + ETH_HLEN;

	if ((void *)ip > end_of(frame))
		return XDP_PASS;
	if (ethertype_of(ethernet) == bpf_htons(ETH_P_IPV6) &&
	    !(frame->port->flags & PORT_CLOSED) && (void *)(ip + 1) <= end_of(frame) &&
	    is_for(frame->port, ethernet)) {
		const struct sid *sid = find_sid(frame, high(&ip->daddr), low(&ip->daddr));

		if (sid)
			return endpoint(frame, sid, ip);
	}
	return headend(frame);
}

SEC("xdp.frags")
int srv6(struct xdp_md *ctx)
{
	__u32 zero = 0, ifindex = ctx->ingress_ifindex, slot = ifindex & (LIMIT_PORTS - 1);
	struct frame frame = {.ctx = ctx, .l3 = ETH_HLEN};
	__u32 removed = 0;
	__u64 tags = 0;

	frame.control = bpf_map_lookup_elem(&control, &zero);
	frame.port = bpf_map_lookup_elem(&ports, &slot);
	if (!frame.control || !frame.port || frame.port->ifindex != ifindex)
		return XDP_PASS;
	frame.row = bpf_get_smp_processor_id();

	const void *ethernet = data_of(&frame);

	if (ethernet + ETH_HLEN > end_of(&frame))
		return XDP_PASS;
	if (is_vlan(ethertype_of(ethernet)))
		removed = untag(&frame, &tags);
	int verdict = process(&frame);

	return removed && verdict == XDP_PASS ? tag_again(ctx, removed, tags) : verdict;
}

/* Returns XDP_PASS if the kernel can look up in a table by number (Linux 6.5, and later updates of
 * 6.1 and 6.6). The kernel rejects unknown flags before it checks the interface, which is invalid
 * here. Run once. */
SEC("xdp")
int finds_tables(struct xdp_md *ctx)
{
	struct bpf_fib_lookup fib = {.family = AF_INET};
	long answer = bpf_fib_lookup(ctx, &fib, sizeof(fib),
				     BPF_FIB_LOOKUP_DIRECT | BPF_FIB_LOOKUP_TBID);

	return answer == -EINVAL ? XDP_DROP : XDP_PASS;
}

/* Reprocesses a packet that returned from a service function, netfilter or a proxy's, to another
 * local SID, as if received on its original port. Not inline, so that packets on their way in do
 * not pay for it. */
static __noinline int again(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct frame frame = {.ctx = ctx, .l3 = ETH_HLEN};
	const void *ethernet = data_of(&frame);
	const struct ipv6hdr *ip = ethernet + ETH_HLEN;

	if ((void *)(ip + 1) > end_of(&frame))
		return XDP_DROP;
	__u32 port = load32(ethernet + ETH_ALEN), slot = port & (LIMIT_PORTS - 1);

	frame.control = bpf_map_lookup_elem(&control, &zero);
	frame.port = bpf_map_lookup_elem(&ports, &slot);
	if (!frame.control || !frame.port)
		return XDP_DROP;
	frame.row = bpf_get_smp_processor_id();
	if (frame.port->ifindex != port)
		return drop(&frame, REASON_OTHER_PORT);
	const struct sid *sid = find_sid(&frame, high(&ip->daddr), low(&ip->daddr));

	return sid ? endpoint(&frame, sid, ip) : drop(&frame, REASON_NO_ROUTE);
}

/* Runs on the two interfaces by which inner packets of netfilter and of proxies enter the kernel.
 * These interfaces poll because they have an XDP program. */
SEC("xdp.frags")
int function_again(struct xdp_md *ctx)
{
	const void *ethernet = (void *)(long)ctx->data;

	if (ethernet + ETH_HLEN > (void *)(long)ctx->data_end ||
	    load32(ethernet) != AGAIN_MAC_HIGH || load16(ethernet + 4) != AGAIN_MAC_LOW)
		return XDP_PASS;
	return again(ctx);
}

/* An inner packet that enters the kernel. */
SEC("tc")
int function_in(struct __sk_buff *skb)
{
	return into_netfilter(skb);
}

/* An inner packet that leaves the kernel. A packet without an ingress interface was sent by this
 * node, unless its timestamp is a tag: the kernel loses the ingress interface of IPv6 fragments. */
SEC("tc")
int function_out(struct __sk_buff *skb)
{
	__u32 zero = 0;
	const struct control *state = bpf_map_lookup_elem(&control, &zero);

	if (!state)
		return TC_ACT_SHOT;
	if (!skb->ingress_ifindex &&
	    (skb->protocol != bpf_htons(ETH_P_IPV6) || skb->tstamp >> 48 != state->magic))
		return own(skb, state);
	if (skb->ingress_ifindex && skb->ingress_ifindex != state->function_in)
		return shoot(state, skb, REASON_LOCAL_ANSWER);
	return out_of_netfilter(skb, state);
}

/* A packet of a proxy that is sent to the function. */
SEC("tc")
int proxy_in(struct __sk_buff *skb)
{
	return into_function(skb);
}

/* A packet received on an interface that leads to a proxy's function. */
SEC("tc")
int proxy_back(struct __sk_buff *skb)
{
	return out_of_function(skb);
}

/* A packet that a port's XDP program has left to the kernel, or one that a tunnel has decapsulated. */
SEC("tc")
int port_in(struct __sk_buff *skb)
{
	mark_seen(skb);
	return refuse_sum_in_headers(skb);
}

/* A packet that leaves through another interface. */
SEC("tc")
int answers(struct __sk_buff *skb)
{
	return is_forwarded(skb) ? TC_ACT_UNSPEC : guard(skb, 1);
}

/* The same for interfaces without a link-layer header. */
SEC("tc")
int answers_without_link(struct __sk_buff *skb)
{
	return is_forwarded(skb) ? TC_ACT_UNSPEC : guard(skb, 0);
}

/* A packet that the kernel drops. Uses the first and third argument of the tracepoint. */
SEC("tp_btf/kfree_skb")
int dropped(__u64 *arguments)
{
	count_drop((const struct sk_buff *)arguments[0], arguments[2]);
	return 0;
}

/* Starts the timer. The loader runs it once. */
SEC("syscall")
int start_watch(void *ctx)
{
	__u32 zero = 0;
	struct watch *watch = bpf_map_lookup_elem(&watches, &zero);
	struct control *state = bpf_map_lookup_elem(&control, &zero);

	if (!watch || !state)
		return -1;
	set_passage_time(state);
	long failed = bpf_timer_init(&watch->timer, &watches, CLOCK_MONOTONIC);

	if (!failed)
		failed = bpf_timer_set_callback(&watch->timer, tick);
	return failed ? failed : bpf_timer_start(&watch->timer, LIMIT_TICK_NS, 0);
}
