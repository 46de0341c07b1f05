// type makes a distinct type; casts convert to it and back.
#include <ubpf_model.p4>

type bit<16> port_t;
header h_t { port_t port; bit<16> number; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        port_t fifth = (port_t)5;
        if (hdr.h.port == fifth) {
            hdr.h.number = (bit<16>)hdr.h.port + 1;
        } else {
            hdr.h.port = (port_t)hdr.h.number;
        }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
