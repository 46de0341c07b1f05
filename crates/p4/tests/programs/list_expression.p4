// A list expression becomes a struct, a header, a tuple, or the type it is compared with.
#include <ubpf_model.p4>

struct two_t { bit<8> x; tuple<bit<8>, bool> some; }
header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; }
struct meta_t { two_t two; }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        if (hdr.h == { 1, 2 }) {
            hdr.h = { hdr.h.b, hdr.h.a };
        } else {
            meta.two = { hdr.h.a, { hdr.h.b, true } };
            tuple<bit<8>, bool> some = meta.two.some;
            hdr.h = { some[1] ? some[0] : 0, meta.two.x + 1 };
        }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
