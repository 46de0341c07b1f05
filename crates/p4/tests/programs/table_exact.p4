// A table with an exact key: a hit writes the entry's argument, a miss drops.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action set(bit<8> to) { hdr.h.b = to; }
    action drop() { mark_to_drop(); }
    table t {
        key = { hdr.h.a: exact; }
        actions = { set; drop; }
        default_action = drop();
    }
    apply { t.apply(); }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.h); } }

ubpf(prs(), c(), dprs()) main;
