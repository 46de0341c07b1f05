// A variable without an initializer is zero at each execution; headers are invalid.
#include <ubpf_model.p4>

struct pair_t { bit<8> a; bit<8> b; }
header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers { h_t h; }
struct meta_t { bit<8> kept; }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    bit<8> own;
    action give(out bit<8> nothing) { }
    apply {
        bit<8> none;
        pair_t two;
        h_t three;
        bool flag;
        hdr.h.b = none + two.a + meta.kept + own;
        none = 9;
        own = 9;
        two = { 9, 9 };
        meta.kept = 9;
        give(hdr.h.c);
        for (bit<8> i in 0 .. 2) { bit<8> inside; hdr.h.d = hdr.h.d + inside; inside = 9; }
        if (flag || three.isValid()) hdr.h.a = 0xee;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
