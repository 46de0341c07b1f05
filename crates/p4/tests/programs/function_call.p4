// Functions: results, inout parameters, and overloads by the number of arguments.
#include <ubpf_model.p4>

bit<8> swap(inout bit<8> x, inout bit<8> y) {
    bit<8> old = x;
    x = y;
    y = old;
    return old;
}

bit<8> sum(in bit<8> x, in bit<8> y) { return x + y; }
bit<8> sum(in bit<8> x, in bit<8> y, in bit<8> z) { return sum(x, y) + z; }

void nothing(in bit<8> x) {
    if (x == 5) return;
}
header h_t { bit<8> a; bit<8> b; bit<8> c; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        bit<8> old = swap(hdr.h.a, hdr.h.b);
        hdr.h.c = old + sum(hdr.h.a, hdr.h.b) + sum(1, sum(2, 3), 4) + sum(y = 1, x = 2);
        nothing(hdr.h.a);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
