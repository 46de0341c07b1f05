// Bit slices are read and assigned, also as arguments that an action writes.
#include <ubpf_model.p4>

header h_t { bit<16> a; bit<16> b; bit<8> c; int<8> s; bit<4> n; bit<4> m; bit<8> d; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action turn(inout bit<4> x) { x = ~x; }
    apply {
        hdr.h.c = hdr.h.a[11:4];
        hdr.h.b[7:0] = hdr.h.a[15:8];
        hdr.h.b[15:15] = 1;
        hdr.h.n = hdr.h.s[7:4];
        hdr.h.m = hdr.h.a[11:4][3:0];
        hdr.h.a[15:12] = 4w5;
        turn(hdr.h.d[5:2]);
        hdr.h.s[0:0] = ~hdr.h.s[0:0];
        hdr.h.a[11:4][7:4] = 4w0xe;
        turn(hdr.h.b[15:8][3:0]);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
