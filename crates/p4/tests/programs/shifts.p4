// Shifts: right shifts of int<W> are arithmetic; a shift by the width or more shifts out all bits.
#include <ubpf_model.p4>

header h_t {
    bit<8> by;
    bit<8> u;
    bit<8> left;
    bit<8> right;
    int<8> s;
    int<8> signed_left;
    int<8> signed_right;
    bit<8> known;
}
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.left = hdr.h.u << hdr.h.by;
        hdr.h.right = hdr.h.u >> hdr.h.by;
        hdr.h.signed_left = hdr.h.s << hdr.h.by;
        hdr.h.signed_right = hdr.h.s >> hdr.h.by;
        hdr.h.known = (8w1 << 3) | (8w0xf0 >> 6) | (hdr.h.u << 8);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
