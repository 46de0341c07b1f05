// return in apply leaves that control; the enclosing control and the deparser continue.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control part(in bit<8> a, inout bit<8> b) {
    apply {
        b = 1;
        for (bit<8> i in 0 .. 9) { if (a == 1) return; }
        b = 2;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        part.apply(hdr.h.a, hdr.h.b);
        hdr.h.c = 0x33;
        if (hdr.h.a == 2) return;
        hdr.h.c = 0x44;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
