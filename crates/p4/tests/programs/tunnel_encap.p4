// Encapsulation of IPv4 in IPv4 (RFC 2003) or GRE (RFC 2784), by a table of tunnels.
#include <ubpf_model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}
header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  dscp;
    bit<16> length;
    bit<16> id;
    bit<3>  flags;
    bit<13> offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}
header gre_t {
    bit<1>  checksum;
    bit<1>  reserved;
    bit<1>  key;
    bit<1>  sequence;
    bit<9>  rest;
    bit<3>  version;
    bit<16> protocol;
}
struct headers {
    ethernet_t ethernet;
    ipv4_t     outer;
    gre_t      gre;
    ipv4_t     ipv4;
}
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 {
        p.extract(hdr.ipv4);
        transition accept;
    }
}

// One's complement sum of a header's words, as in its checksum (RFC 791).
bit<16> checksum_of(in ipv4_t h) {
    bit<32> sum = (bit<32>)(h.version ++ h.ihl ++ h.dscp) + (bit<32>)h.length + (bit<32>)h.id
        + (bit<32>)(h.flags ++ h.offset) + (bit<32>)(h.ttl ++ h.protocol)
        + (bit<32>)h.src[31:16] + (bit<32>)h.src[15:0]
        + (bit<32>)h.dst[31:16] + (bit<32>)h.dst[15:0];
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    return ~sum[15:0];
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    Register<bit<16>, bit<32>>(1) ids;

    action wrap(in bit<8> protocol, in bit<16> more, bit<32> from, bit<32> to) {
        hdr.outer = hdr.ipv4;
        hdr.outer.length = hdr.ipv4.length + more;
        hdr.outer.id = ids.read(0);
        ids.write(0, hdr.outer.id + 1);
        // Copy Don't Fragment from the inner packet (RFC 2003 section 3.1).
        hdr.outer.flags = hdr.ipv4.flags & 2;
        hdr.outer.offset = 0;
        hdr.outer.ihl = 5;
        hdr.outer.ttl = 64;
        hdr.outer.protocol = protocol;
        hdr.outer.src = from;
        hdr.outer.dst = to;
        hdr.outer.checksum = checksum_of(hdr.outer);
    }
    action ip_in_ip(bit<32> from, bit<32> to) { wrap(4, 20, from, to); }
    action gre(bit<32> from, bit<32> to) {
        hdr.gre = { protocol = 0x0800, ... };
        wrap(47, 24, from, to);
    }
    table tunnels {
        key = { hdr.ipv4.dst: lpm; }
        actions = { ip_in_ip; gre; NoAction; }
    }
    apply {
        if (!hdr.ipv4.isValid()) return;
        if (hdr.ipv4.ttl <= 1) {
            mark_to_drop();
            return;
        }
        bit<16> old = hdr.ipv4.ttl ++ hdr.ipv4.protocol;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        hdr.ipv4.checksum = csum_replace2(hdr.ipv4.checksum, old, hdr.ipv4.ttl ++ hdr.ipv4.protocol);
        tunnels.apply();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
