// next, last and lastIndex of a stack in the parser: a label stack up to the bottom bit.
#include <ubpf_model.p4>

header label_t { bit<20> label; bit<3> class; bit<1> bottom; bit<8> ttl; }
header h_t { bit<8> last; bit<8> count; }
struct headers { label_t[3] labels; h_t h; }
struct meta_t { bit<8> last; }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.labels.next);
        meta.last = (bit<8>)hdr.labels.lastIndex;
        transition select(hdr.labels.last.bottom) {
            0: start;
            1: accept;
        }
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.setValid();
        hdr.h.last = meta.last;
        hdr.h.count = (bit<8>)hdr.labels.size;
        hdr.labels[0].ttl = hdr.labels[0].ttl - 1;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
