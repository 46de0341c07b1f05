// Both zeros of a checksum: each function returns the one of RFC 1624 equation 3.
#include <ubpf_model.p4>

header h_t { bit<16> sum; bit<16> old; bit<16> new; bit<16> two; bit<16> four; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.two = csum_replace2(hdr.h.sum, hdr.h.old, hdr.h.new);
        hdr.h.four = csum_replace4(hdr.h.sum, (bit<32>)hdr.h.old, (bit<32>)hdr.h.new);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
