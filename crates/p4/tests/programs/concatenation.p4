// Concatenation: the left operand of ++ has the high bits, and determines the sign of the result.
#include <ubpf_model.p4>

header h_t { bit<4> high; bit<4> low; bit<8> b; bit<16> joined; int<8> s; bit<8> below_zero; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.joined = hdr.h.low ++ hdr.h.b ++ hdr.h.high;
        hdr.h.below_zero = (hdr.h.s ++ hdr.h.b) < 0 ? 8w1 : 0;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
