/* Hand-written counterpart of crates/p4/tests/programs/srv6_end.p4. */
#include "ubpf.h"

struct sid {
	u32 action;
	u8 psp, zero[3];
};

enum { END, END_DT6, NO_ACTION };

struct prefix {
	u32 bits;
	u8 address[16];
};

struct policy {
	u32 action;
	u8 from[16], first[16], second[16];
};

enum { ENCAP_ONE, ENCAP_TWO };

struct srh {
	u8 next, length, type, left, last_entry, flags;
	u16 tag;
	u64 segments[][2];
} __attribute__((packed));

MAP(c_sids, HASH, 16, sizeof(struct sid), 1024);
MAP(c_policies, LPM_TRIE, sizeof(struct prefix), sizeof(struct policy), 1024);

/* Copies 16 bytes in whole words: the target permits unaligned access. */
static always_inline void copy16(void *to, const void *from)
{
	u64 first = ((const u64 *)from)[0], second = ((const u64 *)from)[1];

	((u64 *)to)[0] = first;
	((u64 *)to)[1] = second;
}

/* Removes `less` bytes after the Ethernet header, or after the IPv6 header with `behind_ipv6`. */
static always_inline int shrink(void *context, u8 *packet, u32 less, int behind_ipv6)
{
	if (behind_ipv6) {
		u64 *from = (void *)(packet + 14), *to = (void *)(packet + 14 + less);
		u64 a = from[0], b = from[1], c = from[2], d = from[3], e = from[4];

		to[0] = a, to[1] = b, to[2] = c, to[3] = d, to[4] = e;
	}
	move_ethernet(packet + less, packet);
	return adjust_head(context, -(int)less) != 0;
}

static always_inline u64 encapsulate(void *context, struct standard_metadata *std,
				     struct policy *policy)
{
	u32 more = policy->action == ENCAP_TWO ? 64 : 40;
	u8 *packet = adjust_head(context, more);
	struct ipv6 *outer, *ipv6;

	if (!packet)
		return give_up(std);
	move_ethernet(packet, packet + more);
	outer = (void *)(packet + 14);
	ipv6 = (void *)(packet + 14 + more);
	outer->version_class_flow = (ipv6->version_class_flow & ~be32(0xf0000000)) | be32(0x60000000);
	outer->length = be16(be16(ipv6->length) + more);
	outer->next = policy->action == ENCAP_TWO ? 43 : 41;
	outer->hops = 64;
	copy16(outer->src, policy->from);
	copy16(outer->dst, policy->first);
	if (policy->action == ENCAP_TWO) {
		/* Reduced encapsulation: the first segment is only in the destination (RFC 8986
		 * section 5.2). */
		*(u64 *)(packet + 54) = be64(0x2902040100000000ull);
		copy16(packet + 62, policy->second);
	}
	return pass(std);
}

u64 entry(void *context, struct standard_metadata *std)
{
	u8 *packet = packet_data(context);
	u32 length = std->packet_length, entries = 0, inner = 0;
	struct ethernet *ethernet = (void *)packet;
	struct ipv6 *ipv6 = (void *)(packet + 14);
	struct srh *srh = (void *)(packet + 54);
	struct prefix prefix;
	struct policy *policy;
	u64 key[2];
	struct sid *sid;

	if (length < 14)
		return give_up(std);
	if (ethernet->type != be16(0x86dd))
		return pass(std);
	if (length < 54)
		return give_up(std);
	if (ipv6->next == 43) {
		if (length < 62)
			return give_up(std);
		entries = srh->last_entry + 1;
		/* No TLVs (RFC 8754 section 2.1), and at most four segments. */
		if (srh->type != 4 || srh->length != (u8)(entries << 1) || srh->left > srh->last_entry ||
		    entries > 4 || length < 62 + entries * 16)
			return give_up(std);
		if (srh->next == 41)
			inner = 62 + entries * 16;
	} else if (ipv6->next == 41) {
		inner = 54;
	}
	if (inner && length < inner + 40)
		return give_up(std);
	if (ipv6->hops <= 1)
		return drop(std);
	ipv6->hops -= 1;
	/* Hash keys of this width are in network byte order. */
	copy16(key, ipv6->dst);
	sid = map_lookup(&c_sids, key);
	if (sid && sid->action == END) {
		u32 less = 8 + entries * 16;

		if (!entries || srh->left == 0)
			return drop(std);
		srh->left -= 1;
		copy16(ipv6->dst, srh->segments[srh->left]);
		if (sid->psp && srh->left == 0) {
			ipv6->next = srh->next;
			ipv6->length = be16(be16(ipv6->length) - ((srh->length + 1) << 3));
			if (!shrink(context, packet, less, 1))
				return give_up(std);
		}
		return pass(std);
	}
	if (sid && sid->action == END_DT6) {
		if (!inner || (entries && srh->left != 0))
			return drop(std);
		if (!shrink(context, packet, inner - 14, 0))
			return give_up(std);
		return pass(std);
	}
	if (sid)
		return pass(std);
	prefix.bits = 128;
	copy16(prefix.address, ipv6->dst);
	policy = map_lookup(&c_policies, &prefix);
	if (!policy || policy->action > ENCAP_TWO)
		return pass(std);
	return encapsulate(context, std, policy);
}
