// exit ends the whole pipeline, also from an action of a nested control.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control part(in bit<8> a, inout bit<8> b) {
    action leave(inout bit<8> x) {
        x = x + 7;
        if (a == 2) exit;
        x = x - 6;
    }
    table t { actions = { leave(b); } default_action = leave(b); }
    apply {
        t.apply();
        if (a == 1) exit;
        b = b + 1;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    part() inner;
    apply {
        inner.apply(hdr.h.a, hdr.h.b);
        hdr.h.c = 0x33;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
