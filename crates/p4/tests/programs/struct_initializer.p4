// Struct initializers by position or by name, nested, and as call arguments.
#include <ubpf_model.p4>

struct inner_t { bit<8> a; bit<8> b; }
struct outer_t { inner_t x; bit<8> z; }

bit<8> difference(in inner_t of) { return of.a - of.b; }
header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        outer_t one = { { 1, 2 }, 3 };
        outer_t other = { z = 5, x = { b = 6, a = 7 } };
        hdr.h.a = one.x.a ^ one.x.b ^ one.z;
        hdr.h.b = difference(other.x);
        hdr.h.c = difference({ 9, 1 });
        hdr.h.d = difference({ b = 1, a = other.z }) + (one.x == { 1, 2 } ? 8w0x10 : 0);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
