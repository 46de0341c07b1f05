/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * End.M.GTP4.E and End.M.GTP6.E (RFC 9433 sections 6.6 and 6.5): moves the inner packet into a GTP-U
 * tunnel. The session is in the argument of the SID.
 *
 * End.M.GTP4.E: the argument begins with the IPv4 destination, and the IPv6 source contains the IPv4
 * source. End.M.GTP6.E: the destination is the last segment.
 *
 * into_gtp() returns an XDP action. It is not inline: see end_b6_encaps.h. The new outer header gets
 * the traffic class and the decremented hop limit of the old one. IPv4 packets are not fragmented
 * (RFC 6864), and have no UDP checksum. With IPv6, which requires one (RFC 8200 section 8.1), frames in
 * several buffers are dropped.
 */
#ifndef KAIDO_SRV6_END_M_GTP_E_H
#define KAIDO_SRV6_END_M_GTP_E_H

#include "checksum.h"
#include "gtp.h"

/* True for the behaviors that encapsulate in GTP-U. */
static __always_inline int is_to_gtp(__u32 behavior)
{
	return behavior == BEHAVIOR_END_M_GTP4_E || behavior == BEHAVIOR_END_M_GTP6_E;
}

/* Reads a packet to the SID. Returns 0, or -1 with `*verdict` set. */
static __always_inline int read_tunnel(const struct frame *frame, const struct sid *sid,
				       struct gtp_tunnel *tunnel, int *verdict)
{
	const struct ipv6hdr *ip = data_of(frame) + ETH_HLEN;
	int is_ipv4 = sid->behavior == BEHAVIOR_END_M_GTP4_E;
	enum reason reason = REASON_NO_SRH;

	*verdict = XDP_DROP;
	if ((void *)(ip + 1) > end_of(frame))
		goto truncated;
	const struct srh *srh = (const void *)(ip + 1);
	enum srh_found found = find_srh(frame, ip, &reason);
	__u8 protocol = ip->nexthdr;
	__u32 at = sizeof(*ip);

	if (found == SRH_OTHER || (found == SRH_NONE && (reason == REASON_EXTENSION || !is_ipv4))) {
		*verdict = drop(frame, reason);
		return -1;
	}
	if (found == SRH_GOOD) {
		/* End.M.GTP6.E is the last but one segment. */
		if (srh->segments_left != (is_ipv4 ? 0 : 1)) {
			*verdict = drop(frame, REASON_WRONG_PAYLOAD);
			return -1;
		}
		if ((void *)(srh + 3) > end_of(frame))
			goto truncated;
		tunnel->addresses = bits_of(srh + 1);
		protocol = srh->next_header;
		at += 8 + 8 * srh->length;
	}
	if (protocol != IPPROTO_IPIP && protocol != IPPROTO_IPV6) {
		*verdict = drop(frame, REASON_WRONG_PAYLOAD);
		return -1;
	}
	struct bits argument = shifted_left(bits_of(&ip->daddr), sid->length);
	struct bits source = shifted_left(bits_of(&ip->saddr), sid->params.gtp.source_at);

	if (is_ipv4) {
		tunnel->addresses.high = source.high >> 32 << 32 | argument.high >> 32;
		argument = shifted_left(argument, 32);
	}
	tunnel->session = argument.high >> 24;
	tunnel->at = at;
	tunnel->hop_limit = ip->hop_limit;
	tunnel->traffic_class = bpf_ntohs(*(__be16 *)ip) >> 4;
	const void *packet = data_of(frame) + ETH_HLEN + at;

	if (packet + sizeof(struct iphdr) > end_of(frame))
		goto truncated;
	tunnel->hash = mix(load64(packet + 12), tunnel->session, protocol);
	return 0;
truncated:
	*verdict = drop(frame, REASON_TRUNCATED);
	return -1;
}

/* Writes the UDP and GTP-U headers for `length` bytes of payload. Returns 0, or -1 if the frame is too
 * short. */
static __always_inline int write_gtp(const struct frame *frame, void *to, const struct sid *sid,
				     const struct gtp_tunnel *tunnel, __u32 length)
{
	struct udphdr *udp = to;
	struct gtp_header *gtp = (void *)(udp + 1);
	struct gtp_container *container = (void *)(gtp + 1);
	int has_container = sid->flags & SID_PDU_SESSION;
	__u32 size = length + (has_container ? sizeof(*container) : 0);

	if ((void *)(gtp + 1) > end_of(frame))
		return -1;
	/* A dynamic port (RFC 6335 section 6). */
	udp->source = bpf_htons(0xc000 | (tunnel->hash >> 50));
	udp->dest = bpf_htons(GTP_PORT);
	udp->len = bpf_htons(size + sizeof(*udp) + sizeof(*gtp));
	udp->check = 0;
	gtp->flags = GTP_FLAGS | (has_container ? GTP_NEXT : 0);
	gtp->type = GTP_G_PDU;
	gtp->length = bpf_htons(size);
	gtp->teid = bpf_htonl(tunnel->session);
	if (!has_container)
		return 0;
	if ((void *)(container + 1) > end_of(frame))
		return -1;
	__u8 pdu_type = sid->flags & SID_UPLINK ? PDU_UPLINK : PDU_DOWNLINK;

	*container = (struct gtp_container){
		.next = GTP_PDU_SESSION,
		.length = 1,
		.pdu_type = pdu_type << 4,
		.flow = container_flow(tunnel->session, pdu_type),
	};
	return 0;
}

/* Writes the UDP checksum of the IPv6 packet at offset `at` of the frame, with `length` bytes after its
 * header. Returns 0, or -1 if the frame is too short. */
static __always_inline int write_udp_sum(const struct frame *frame, __u32 at, __u32 length)
{
	/* The addresses of the pseudo-header precede the UDP header (RFC 8200 section 8.1). */
	__u32 from = at + offsetof(struct ipv6hdr, saddr);
	int sum = sum_of(frame->ctx, from, 32 + length, bpf_htonl(length));

	if (sum < 0)
		return -1;
	sum += bpf_htons(IPPROTO_UDP);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	__u16 check = ~sum;
	struct udphdr *udp = data_of(frame) + at + sizeof(struct ipv6hdr);

	if ((void *)(udp + 1) > end_of(frame))
		return -1;
	udp->check = check ? check : 0xffff;
	return 0;
}

/* Returns the adjacency for the new packet, or null with `*reason` set. */
static __always_inline const struct adjacency *route_tunnel(const struct frame *frame,
							    const struct sid *sid,
							    const struct gtp_tunnel *tunnel,
							    __be32 flow, int *reason)
{
	const struct bits *to = &tunnel->addresses;
	__be32 source4 = bpf_htonl(to->high >> 32), destination4 = bpf_htonl(to->high);

	if (sid->behavior == BEHAVIOR_END_M_GTP4_E) {
		if (is_special4(source4) || is_special4(destination4))
			goto irregular;
		return route(frame, destination4, 0, source4, 0,
			     ROUTE_FLOW(tunnel->traffic_class, IPPROTO_UDP),
			     table_of(frame, sid, AF_INET), reason);
	}
	if (is_special6(bpf_cpu_to_be64(to->high)))
		goto irregular;
	return route(frame, bpf_cpu_to_be64(to->high), bpf_cpu_to_be64(to->low),
		     frame->control->source[0], frame->control->source[1],
		     ROUTE_FLOW(flow, IPPROTO_UDP), table_of(frame, sid, AF_INET6), reason);
irregular:
	*reason = REASON_IRREGULAR;
	return 0;
}

/* `length`: of the packet, without padding. */
static __noinline int into_gtp(struct xdp_md *ctx, const struct port *port, const struct sid *sid,
			       __u32 length)
{
	__u32 zero = 0;
	struct frame whole = {
		.ctx = ctx,
		.control = bpf_map_lookup_elem(&control, &zero),
		.port = port,
		.row = bpf_get_smp_processor_id(),
		.l3 = ETH_HLEN,
		.length = length,
	};
	const struct frame *frame = &whole;
	struct gtp_tunnel *tunnel = bpf_map_lookup_elem(&gtp_tunnels, &zero);
	int is_ipv4 = sid->behavior == BEHAVIOR_END_M_GTP4_E, verdict, reason;

	if (!frame->control || !tunnel)
		return XDP_PASS;
	if (read_tunnel(frame, sid, tunnel, &verdict))
		return verdict;
	if (tunnel->at >= length)
		return drop(frame, REASON_TRUNCATED);
	if (tunnel->hop_limit <= 1)
		return drop(frame, REASON_HOP_LIMIT);
	if (!is_ipv4 && end_of(frame) - data_of(frame) != ETH_HLEN + length)
		return drop(frame, REASON_IRREGULAR);
	__u32 payload = length - tunnel->at;
	__u32 header = is_ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	__u32 size = header + sizeof(struct udphdr) + sizeof(struct gtp_header) +
		     (sid->flags & SID_PDU_SESSION ? sizeof(struct gtp_container) : 0);
	__be32 flow = bpf_htonl((__u32)tunnel->traffic_class << 20 | tunnel->hash >> 44);
	const struct adjacency *adjacency = route_tunnel(frame, sid, tunnel, flow, &reason);

	if (!adjacency)
		return drop(frame, reason);
	if (size + payload > adjacency->mtu)
		return drop(frame, REASON_TOO_BIG);
	struct tags tags = tags_of(adjacency);

	if (cut_head(frame, (int)tunnel->at - (int)size, tags))
		return drop(frame, REASON_NO_HEADROOM);
	__u32 front = link_header(tags);
	struct ipv6hdr *ip = data_of(frame) + front;
	struct iphdr *ip4 = (void *)ip;

	if ((void *)(ip4 + 1) > end_of(frame) ||
	    write_gtp(frame, (void *)ip4 + header, sid, tunnel, payload))
		return drop(frame, REASON_TRUNCATED);
	if (is_ipv4) {
		*ip4 = (struct iphdr){
			.version = 4,
			.ihl = 5,
			.tos = tunnel->traffic_class,
			.tot_len = bpf_htons(size + payload),
			.frag_off = bpf_htons(0x4000),
			.ttl = tunnel->hop_limit - 1,
			.protocol = IPPROTO_UDP,
			.saddr = bpf_htonl(tunnel->addresses.high >> 32),
			.daddr = bpf_htonl(tunnel->addresses.high),
		};
		ip4->check = ~header_sum(ip4);
		count_sid(frame, sid);
		return send(frame, adjacency, tags, bpf_htons(ETH_P_IP));
	}
	if ((void *)(ip + 1) > end_of(frame))
		return drop(frame, REASON_TRUNCATED);
	*(__be32 *)ip = flow | bpf_htonl(0x60000000);
	ip->payload_len = bpf_htons(size + payload - sizeof(*ip));
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = tunnel->hop_limit - 1;
	((__u64 *)&ip->saddr)[0] = frame->control->source[0];
	((__u64 *)&ip->saddr)[1] = frame->control->source[1];
	store_bits(&ip->daddr, tunnel->addresses);
	if (write_udp_sum(frame, front, size + payload - sizeof(*ip)))
		return drop(frame, REASON_TOO_BIG);
	count_sid(frame, sid);
	return send(frame, adjacency, tags, bpf_htons(ETH_P_IPV6));
}

#endif
