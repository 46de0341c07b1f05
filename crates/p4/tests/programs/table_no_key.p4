// A table without a key never hits: it runs its default action.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> hit; bit<8> b; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action set(bit<8> to) { hdr.h.b = to; }
    table t { actions = { set; } default_action = set(5); }
    table empty { key = { } actions = { NoAction; } }
    apply {
        hdr.h.hit = t.apply().hit ? 8w1 : 2;
        empty.apply();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
