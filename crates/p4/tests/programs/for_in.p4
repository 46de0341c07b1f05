// for over a range includes both ends, also the maximum of the type, and evaluates the ends once.
#include <ubpf_model.p4>

header h_t { bit<8> from; bit<8> to; bit<8> rounds; bit<8> last; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        for (bit<8> i in hdr.h.from .. hdr.h.to) {
            hdr.h.rounds = hdr.h.rounds + 1;
            hdr.h.last = i;
            hdr.h.to = 0;
            i = 0;
        }
        for (int<8> i in -1 .. 1) { hdr.h.from = hdr.h.from + 1; }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
