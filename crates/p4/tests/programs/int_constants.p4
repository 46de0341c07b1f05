// int has arbitrary precision at compile time: large numbers, their slices, static_assert.
#include <ubpf_model.p4>

const int HUGE = (1 << 100) + (1 << 104);
const int NEGATIVE = -3;
header h_t { bit<8> a; bit<8> b; int<8> c; bit<8> d; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.a = (bit<8>)(HUGE >> 96);
        hdr.h.b = HUGE[107:100];
        hdr.h.c = (int<8>)(NEGATIVE * 2);
        hdr.h.d = NEGATIVE[7:0];
        bool sure = static_assert(HUGE > 0 && NEGATIVE < 0, "signs");
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
