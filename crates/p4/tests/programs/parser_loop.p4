// A parser loop ends with its counter or with the packet.
#include <ubpf_model.p4>

header byte_t { bit<8> value; }
header h_t { bit<8> count; bit<8> sum; }
struct headers { h_t h; }
struct meta_t { bit<8> sum; }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    bit<8> left = 0;
    byte_t one;
    state start {
        p.extract(hdr.h);
        left = hdr.h.count;
        transition next;
    }
    state next { transition select(left) { 0: accept; default: add; } }
    state add {
        p.extract(one);
        meta.sum = meta.sum + one.value;
        left = left - 1;
        transition next;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply { hdr.h.sum = meta.sum; }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
