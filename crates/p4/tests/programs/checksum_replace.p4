// Incremental update of a checksum after a change of one word, then of an address.
#include <ubpf_model.p4>

header h_t {
    bit<64> begin;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        bit<16> old = hdr.h.ttl ++ hdr.h.protocol;
        hdr.h.ttl = hdr.h.ttl - 1;
        hdr.h.checksum = csum_replace2(hdr.h.checksum, old, hdr.h.ttl ++ hdr.h.protocol);
        bit<32> to = hdr.h.dst == 0x0a000002 ? 32w0xc0a80709 : hdr.h.dst;
        hdr.h.checksum = csum_replace4(hdr.h.checksum, hdr.h.dst, to);
        hdr.h.dst = to;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
