// Constants: from constants, of structs, within blocks, and in the widths of types.
#include <ubpf_model.p4>

const int WIDTH = 8;
const bit<8> ONE = 1;
const bit<8> TWO = ONE + ONE;
const bool ENABLED = TWO == 2 && ONE != 2;
struct pair_t { bit<8> x; bit<8> y; }
const pair_t BOTH = { 7, 8 };
header h_t { bit<WIDTH> a; bit<(WIDTH * 2)> b; bit<8> c; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    const bit<8> OWN = 3;
    apply {
        const bit<8> LOCAL = TWO << 4;
        hdr.h.a = TWO;
        hdr.h.b = BOTH.y ++ BOTH.x;
        hdr.h.c = ENABLED ? LOCAL + OWN : 0;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
