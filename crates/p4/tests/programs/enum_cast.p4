// A cast to an enum with an underlying type truncates to the width of that type.
#include <ubpf_model.p4>

enum bit<8> E { A = 1, B = 2 }

header h_t { bit<16> wide; bit<8> narrow; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        E e = (E)(bit<8>)hdr.h.wide;
        if (e == E.A) { hdr.h.narrow = 0xaa; } else if (e == E.B) { hdr.h.narrow = 0xbb; }
        hdr.h.wide = (bit<16>)(bit<8>)e;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.h); } }

ubpf(prs(), c(), dprs()) main;
