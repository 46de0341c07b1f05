// Arithmetic of bit<W> wraps modulo 2^W, also if W is not a multiple of 8.
#include <ubpf_model.p4>

header h_t {
    bit<8>  a;
    bit<8>  b;
    bit<8>  sum;
    bit<8>  difference;
    bit<8>  product;
    bit<8>  negative;
    bit<3>  x;
    bit<13> y;
}
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.sum = hdr.h.a + hdr.h.b;
        hdr.h.difference = hdr.h.a - hdr.h.b;
        hdr.h.product = hdr.h.a * hdr.h.b;
        hdr.h.negative = -hdr.h.a;
        hdr.h.x = hdr.h.x + 1;
        hdr.h.y = hdr.h.y - 1;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
