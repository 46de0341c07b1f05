// Struct assignment copies the value: a copy does not change with its source.
#include <ubpf_model.p4>

struct inner_t { bit<8> a; bit<8> b; }
struct outer_t { inner_t x; bit<8> z; }
header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        outer_t one;
        one.x = { hdr.h.a, hdr.h.b };
        one.z = 3;
        outer_t other = one;
        one.x.a = 0x11;
        inner_t part = other.x;
        other.x.b = 0x22;
        hdr.h.a = one.x.a;
        hdr.h.b = other.x.a;
        hdr.h.c = part.b + one.z;
        hdr.h.d = one == other ? 8w1 : 2;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
