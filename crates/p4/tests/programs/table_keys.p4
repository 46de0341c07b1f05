// Key expressions: a slice, isValid, a named sum, and a prefix next to exact values.
#include <ubpf_model.p4>

header h_t { bit<8> kind; bit<8> a; bit<32> to; }
header more_t { bit<8> b; }
struct headers { h_t h; more_t more; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.kind[7:7]) { 1: more; default: accept; }
    }
    state more { hdr.more.setValid(); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action set(bit<8> to) { hdr.h.a = to; }
    table t {
        key = {
            hdr.h.kind[3:0]: exact;
            hdr.more.isValid(): exact;
            hdr.h.kind + hdr.h.a: exact @name("sum");
            hdr.h.to: lpm;
        }
        actions = { set; NoAction; }
    }
    apply { t.apply(); }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.h); } }

ubpf(prs(), c(), dprs()) main;
