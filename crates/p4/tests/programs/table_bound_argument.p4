// Action arguments bound in the table's action list; the entry supplies the rest.
#include <ubpf_model.p4>

header h_t { bit<8> key; bit<8> a; bit<8> b; bit<8> c; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action add(inout bit<8> to, in bit<8> by, bit<8> more) { to = to + by + more; }
    table t {
        key = { hdr.h.key: exact; }
        actions = { add(hdr.h.b, hdr.h.c); }
        default_action = add(hdr.h.b, hdr.h.c, 6);
    }
    apply { t.apply(); }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
