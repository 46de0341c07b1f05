// advance skips bits, which are not emitted; length is that of the whole packet.
#include <ubpf_model.p4>

header h_t { bit<8> bytes; bit<8> a; }
struct headers { h_t h; }
struct meta_t { bit<8> length; }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.h);
        p.advance((bit<32>)hdr.h.bytes << 3);
        meta.length = (bit<8>)p.length();
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply { hdr.h.a = hdr.h.a + meta.length; }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
