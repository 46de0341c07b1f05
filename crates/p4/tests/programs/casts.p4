// Casts: truncation, extension by the sign of the source, and bool as one bit.
#include <ubpf_model.p4>

header h_t {
    bit<8>  a;
    int<8>  s;
    bit<16> wide;
    int<16> signed_wide;
    bit<4>  narrow;
    bit<3>  three;
    bit<1>  same;
    bit<16> bits;
}
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.wide = (bit<16>)hdr.h.a;
        hdr.h.signed_wide = (int<16>)hdr.h.s;
        hdr.h.narrow = (bit<4>)hdr.h.a;
        hdr.h.same = (bit<1>)(hdr.h.a == (bit<8>)hdr.h.s);
        hdr.h.bits = (bit<16>)(int<16>)hdr.h.s;
        bool same = (bool)hdr.h.same;
        if (same) hdr.h.three = 7;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
