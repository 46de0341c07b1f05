// Default action of a table: the program's, or the control plane's, or NoAction.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action set(bit<8> to) { hdr.h.b = to; }
    action add(bit<8> n) { hdr.h.c = hdr.h.c + n; }
    table t { key = { hdr.h.a: exact; } actions = { set; } default_action = set(5); }
    table silent { key = { hdr.h.a: exact; } actions = { add; } }
    table fixed { key = { hdr.h.a: exact; } actions = { add; } const default_action = add(0x11); }
    apply {
        t.apply();
        silent.apply();
        fixed.apply();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
