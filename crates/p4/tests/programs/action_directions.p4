// Directions of action parameters: copied in at the call, copied out at its end from left to right.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action move(in bit<8> one, inout bit<8> two, out bit<8> three) {
        two = two * 2;
        three = two + one;
    }
    action both(inout bit<8> first, inout bit<8> last) {
        first = first + 1;
        last = last + 2;
    }
    action reads(inout bit<8> to, in bit<8> from) {
        to = to + 1;
        hdr.h.c = from;
    }
    action alone(out bit<8> to) { to = to + 3; }
    apply {
        if (hdr.h.a == 1) move(hdr.h.a, hdr.h.b, hdr.h.c);
        else if (hdr.h.a == 2) both(hdr.h.b, hdr.h.b);
        else if (hdr.h.a == 3) reads(hdr.h.b, hdr.h.b);
        else alone(hdr.h.b);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
