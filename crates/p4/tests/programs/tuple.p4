// Tuples: built from lists, indexed by position, compared as a whole.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<8> same; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        tuple<bit<8>, bit<16>> two = { hdr.h.a, 0x1234 };
        tuple<bit<8>, bit<16>> other = two;
        hdr.h.b = other[0] + 1;
        hdr.h.c = other[1];
        hdr.h.same = two == other ? 8w1 : 0;
        other = { 0, 0 };
        if (two != other) hdr.h.same = hdr.h.same + 0x10;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
