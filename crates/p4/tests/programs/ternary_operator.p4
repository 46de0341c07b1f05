// ? : yields one of two values, and does not evaluate the other.
#include <ubpf_model.p4>

bit<8> tick(inout bit<8> count) {
    count = count + 1;
    return 0x77;
}
header h_t { bit<8> a; bit<8> b; bit<8> larger; bit<8> sign; bit<8> count; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.larger = hdr.h.a > hdr.h.b ? hdr.h.a : hdr.h.b;
        hdr.h.sign = hdr.h.a > hdr.h.b ? 8w1 : hdr.h.a == hdr.h.b ? 0 : 2;
        hdr.h.sign = hdr.h.a == 0 ? tick(hdr.h.count) : hdr.h.sign;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
