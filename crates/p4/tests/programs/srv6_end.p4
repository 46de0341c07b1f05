// An SRv6 node (RFC 8986): End with PSP, End.DT6 and H.Encaps.Red.
//
// H.Encaps.Red encapsulates packets of a prefix with a list of one or two segments.
#include <ubpf_model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}
header ipv6_t {
    bit<4>   version;
    bit<8>   class;
    bit<20>  flow;
    bit<16>  length;
    bit<8>   next;
    bit<8>   hops;
    bit<128> src;
    bit<128> dst;
}
header srh_t {
    bit<8>  next;
    bit<8>  length;
    bit<8>  routing_type;
    bit<8>  left;
    bit<8>  last_entry;
    bit<8>  flags;
    bit<16> tag;
}
header segment_t { bit<128> sid; }
struct headers {
    ethernet_t   ethernet;
    ipv6_t       outer;
    srh_t        outer_srh;
    segment_t[4] outer_segments;
    ipv6_t       ipv6;
    srh_t        srh;
    segment_t[4] segments;
    ipv6_t       inner;
}
struct meta_t { bit<8> entries; }

error { NotSrh }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x86dd: ipv6; default: accept; }
    }
    state ipv6 {
        p.extract(hdr.ipv6);
        transition select(hdr.ipv6.next) {
            43: srh;
            41: inner;
            default: accept;
        }
    }
    state srh {
        p.extract(hdr.srh);
        verify(hdr.srh.routing_type == 4, error.NotSrh);
        // No TLVs: the SRH consists of segments only (RFC 8754 section 2.1).
        verify(hdr.srh.length == (hdr.srh.last_entry + 1) << 1, error.NotSrh);
        verify(hdr.srh.left <= hdr.srh.last_entry, error.NotSrh);
        meta.entries = hdr.srh.last_entry + 1;
        transition segments;
    }
    state segments {
        p.extract(hdr.segments.next);
        meta.entries = meta.entries - 1;
        transition select(meta.entries, hdr.srh.next) {
            (0, 41): inner;
            (0, _): accept;
            default: segments;
        }
    }
    state inner {
        p.extract(hdr.inner);
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action drop() { mark_to_drop(); }
    action end(bool psp) {
        if (hdr.srh.left == 0) {
            drop();
            return;
        }
        hdr.srh.left = hdr.srh.left - 1;
        hdr.ipv6.dst = hdr.segments[hdr.srh.left].sid;
        if (psp && hdr.srh.left == 0) {
            hdr.ipv6.next = hdr.srh.next;
            hdr.ipv6.length = hdr.ipv6.length - ((bit<16>)hdr.srh.length + 1 << 3);
            hdr.srh.setInvalid();
            hdr.segments.pop_front(4);
        }
    }
    action end_dt6() {
        if (!hdr.inner.isValid() || hdr.srh.isValid() && hdr.srh.left != 0) {
            drop();
            return;
        }
        hdr.ipv6 = hdr.inner;
        hdr.inner.setInvalid();
        hdr.srh.setInvalid();
        hdr.segments.pop_front(4);
    }
    table sids {
        key = { hdr.ipv6.dst: exact; }
        actions = { end; end_dt6; NoAction; }
    }
    action around(in bit<16> more, in bit<8> next, in bit<128> first, bit<128> from) {
        hdr.outer = {
            version = 6, class = hdr.ipv6.class, flow = hdr.ipv6.flow,
            length = hdr.ipv6.length + 40 + more, next = next, hops = 64, src = from, dst = first
        };
    }
    action encap_one(bit<128> from, bit<128> only) { around(0, 41, only, from); }
    action encap_two(bit<128> from, bit<128> first, bit<128> second) {
        // Reduced: the first segment is only in the destination address (RFC 8986 section 5.2).
        hdr.outer_segments[0] = { second };
        hdr.outer_srh = { next = 41, length = 2, routing_type = 4, left = 1, ... };
        around(24, 43, first, from);
    }
    table policies {
        key = { hdr.ipv6.dst: lpm; }
        actions = { encap_one; encap_two; NoAction; }
    }
    apply {
        if (!hdr.ipv6.isValid()) return;
        if (hdr.ipv6.hops <= 1) {
            drop();
            return;
        }
        hdr.ipv6.hops = hdr.ipv6.hops - 1;
        if (sids.apply().miss) policies.apply();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
