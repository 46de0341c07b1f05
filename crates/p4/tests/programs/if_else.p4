// An else belongs to the nearest if; & | ^ bind tighter than comparisons.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        if (hdr.h.a & 1 == 1)
            if (hdr.h.a & 2 == 2) hdr.h.b = 3;
            else hdr.h.b = 1;
        else if (hdr.h.a == 0) ;
        else { hdr.h.b = 2; }
        if (hdr.h.a > 4 || hdr.h.a == 2 && hdr.h.b == 9) hdr.h.b = hdr.h.b + 0x10;
        if (!(hdr.h.a < 6) == true) hdr.h.b = hdr.h.b + 0x20;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
