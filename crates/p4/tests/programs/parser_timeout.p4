// A parser that does not terminate rejects the packet; the next packet is not affected.
#include <ubpf_model.p4>

header h_t { bit<8> a; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition again; }
    state again { transition select(hdr.h.a) { 1: again; default: accept; } }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply { hdr.h.a = 0x11; }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
