// Integer literals: widths, signs, bases, and int, which has no width.
#include <ubpf_model.p4>

const int M = 100;
const int N = M * 3 - 50;
header h_t {
    bit<8>  a;
    bit<8>  b;
    bit<8>  c;
    bit<8>  d;
    int<8>  e;
    bit<16> f;
    bit<32> g;
    bit<8>  h;
    bit<8>  i;
    bit<8>  j;
}
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.a = 8w255;
        hdr.h.b = 0b1010_1010;
        hdr.h.c = 0o17;
        hdr.h.d = 4w0b1010 ++ 4w0d12;
        hdr.h.e = -8s1;
        hdr.h.f = 16w0xAbCd;
        hdr.h.g = 1_000_000;
        hdr.h.h = N;
        hdr.h.i = 17 / 5 * 16 + 17 % 5;
        hdr.h.j = (1 << 9) - 257;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
