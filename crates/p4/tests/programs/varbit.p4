// A varbit field: its length comes from the packet, from zero to the maximum.
#include <ubpf_model.p4>

header h_t { bit<8> bytes; varbit<32> data; }
struct headers { h_t h; h_t copy; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h, (bit<32>)p.lookahead<bit<8>>() * 8); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.copy = hdr.h;
        if (hdr.copy.data == hdr.h.data) hdr.copy.bytes = 0x77;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
