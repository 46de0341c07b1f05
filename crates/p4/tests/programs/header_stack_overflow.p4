// A parser error stops the parser when a stack overflows: the packet is dropped.
#include <ubpf_model.p4>

header h_t { bit<7> value; bit<1> more; }
struct headers { h_t[2] all; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { transition select(p.lookahead<bit<8>>()) { 0x80: last; default: next; } }
    state next { p.extract(hdr.all.next); transition select(hdr.all.last.more) { 1: next; default: accept; } }
    state last { transition select(hdr.all.last.more) { default: accept; } }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply { hdr.all[0].value = 0x7f; }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
