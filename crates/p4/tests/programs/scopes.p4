// Scopes: an inner name shadows an outer one, and a leading dot names the top level.
#include <ubpf_model.p4>

const bit<8> x = 1;
header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        bit<8> x = 2;
        {
            bit<8> x = x + 10;
            hdr.h.a = x;
            { const bit<8> x = 5; hdr.h.b = x; }
            x = 99;
        }
        hdr.h.c = x;
        if (hdr.h.c == 2) { bit<8> y = 7; x = y; } else { bit<8> y = 8; x = y; }
        hdr.h.d = .x + x;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
