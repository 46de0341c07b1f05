// A range includes both ends; among several matches, the highest priority wins.
#include <ubpf_model.p4>

header h_t { bit<16> port; bit<8> result; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action is(bit<8> what) { hdr.h.result = what; }
    table t { key = { hdr.h.port: range; } actions = { is; NoAction; } }
    apply { t.apply(); }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
