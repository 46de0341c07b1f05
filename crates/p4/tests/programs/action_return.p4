// return leaves only the action; its out arguments are copied out.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action first(inout bit<8> b) {
        b = 1;
        if (hdr.h.a == 1) { return; }
        b = b + 4;
    }
    action more() {
        if (hdr.h.a == 1) return;
        hdr.h.b = hdr.h.b + 10;
    }
    table t { actions = { more; } const default_action = more(); }
    apply {
        first(hdr.h.b);
        hdr.h.b = hdr.h.b + 0x10;
        t.apply();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
