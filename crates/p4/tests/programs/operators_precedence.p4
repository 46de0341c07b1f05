// Precedence: * before + and ++, these before shifts, & before ^ before |, all before comparisons.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> f; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.a = 1 + 2 * 3 << 1;
        hdr.h.b = 0xf0 | 0x0f & 0x3c ^ 0x01;
        hdr.h.c = (4w1 ++ 4w2) + 3 * 2 - 1;
        hdr.h.d = hdr.h.f & 0xf == 5 && hdr.h.f | 1 != 4 || false ? 8w0xaa : 8w0xbb;
        hdr.h.e = -hdr.h.f + ~hdr.h.f * 2;
        hdr.h.f = hdr.h.f - 1 - 2 |+| 250 |-| 1;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
