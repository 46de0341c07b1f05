// A parser calls another, with constructor arguments and out parameters.
#include <ubpf_model.p4>

header h_t { bit<8> a; }
struct headers { h_t one; h_t two; h_t sum; }
struct meta_t { bit<8> sum; }

parser times(packet_in p, out h_t h, out bit<8> product)(bit<8> by) {
    state start {
        p.extract(h);
        product = h.a * by;
        transition select(h.a) { 0: reject; default: accept; }
    }
}

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    times(1) once;
    times(by = 2) twice;
    state start {
        bit<8> part;
        once.apply(p, hdr.one, part);
        meta.sum = part;
        twice.apply(p, hdr.two, part);
        meta.sum = meta.sum + part;
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply { hdr.sum = { meta.sum }; }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
