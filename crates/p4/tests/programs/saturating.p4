// Saturating |+| and |-| stop at the minimum and the maximum of their type.
#include <ubpf_model.p4>

header h_t {
    bit<8> a;
    bit<8> b;
    bit<8> sum;
    bit<8> difference;
    int<8> s;
    int<8> t;
    int<8> signed_sum;
    int<8> signed_difference;
}
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.sum = hdr.h.a |+| hdr.h.b;
        hdr.h.difference = hdr.h.a |-| hdr.h.b;
        hdr.h.signed_sum = hdr.h.s |+| hdr.h.t;
        hdr.h.signed_difference = hdr.h.s |-| hdr.h.t;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
