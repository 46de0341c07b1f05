// switch over a value: one label is taken without fall-through, default matches all other values.
#include <ubpf_model.p4>

const bit<8> TEN = 10;
header h_t { bit<8> a; bit<8> b; bit<8> c; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        switch (hdr.h.a + 1) {
            1: { hdr.h.b = 0x11; }
            2:
            TEN: { hdr.h.b = 0x22; }
            default: { hdr.h.b = 0x33; }
        }
        switch (hdr.h.a[1:0]) { 3: { hdr.h.c = 3; } 2: {} }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
