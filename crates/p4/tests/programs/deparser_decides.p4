// A deparser with conditions: headers that it does not emit are not sent.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; h_t more; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply { hdr.more = { 0x55, 0x66 }; }
}

control dprs(packet_out b, in headers hdr) { apply { if (hdr.h.a == 3) return; if (hdr.h.a == 2) b.emit(hdr.more); b.emit(hdr.h); } }

ubpf(prs(), c(), dprs()) main;
