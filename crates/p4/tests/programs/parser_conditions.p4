// Conditions in parser states; a state without a transition rejects the packet.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.h);
        if (hdr.h.a == 1) {
            hdr.h.b = 0x11;
        } else if (hdr.h.a == 2) {
            hdr.h.b = 0x22;
        }
        transition select(hdr.h.b == 0, hdr.h.a) {
            (true, _): nowhere;
            (false, _): accept;
        }
    }
    state nowhere { hdr.h.b = 0x33; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply { }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
