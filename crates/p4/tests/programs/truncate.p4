// truncate limits the length of the output, headers and payload.
#include <ubpf_model.p4>

header h_t { bit<8> length; bit<8> a; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        if (hdr.h.length != 0xff) truncate((bit<32>)hdr.h.length);
        hdr.h.a = 0xee;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
