// Comparisons of int<W> are signed, those of bit<W> are unsigned.
#include <ubpf_model.p4>

header h_t {
    int<8> a;
    int<8> b;
    bit<1> less;
    bit<1> less_or_equal;
    bit<1> greater;
    bit<1> greater_or_equal;
    bit<1> equal;
    bit<1> not_equal;
    bit<1> bits_less;
    bit<1> bits_greater;
}
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.less = (bit<1>)(hdr.h.a < hdr.h.b);
        hdr.h.less_or_equal = (bit<1>)(hdr.h.a <= hdr.h.b);
        hdr.h.greater = (bit<1>)(hdr.h.a > hdr.h.b);
        hdr.h.greater_or_equal = (bit<1>)(hdr.h.a >= hdr.h.b);
        hdr.h.equal = (bit<1>)(hdr.h.a == hdr.h.b);
        hdr.h.not_equal = (bit<1>)(hdr.h.a != hdr.h.b);
        hdr.h.bits_less = (bit<1>)((bit<8>)hdr.h.a < (bit<8>)hdr.h.b);
        hdr.h.bits_greater = (bit<1>)((bit<8>)hdr.h.a > (bit<8>)hdr.h.b);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
