// && and || evaluate their right operand only if the left one does not decide; its side effects are skipped.
#include <ubpf_model.p4>

bool tick(inout bit<8> count, in bit<8> by) {
    count = count + by;
    return true;
}
header h_t { bit<8> a; bit<8> count; bit<8> result; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        if (hdr.h.a == 1 && tick(hdr.h.count, 1)) hdr.h.result = hdr.h.result + 1;
        if (hdr.h.a == 1 || tick(hdr.h.count, 0x10)) hdr.h.result = hdr.h.result + 0x10;
        if (!(hdr.h.a == 1)) hdr.h.result = hdr.h.result + 0x80;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
