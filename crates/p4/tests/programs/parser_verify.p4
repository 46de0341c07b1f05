// verify stops the parser if its condition is false.
#include <ubpf_model.p4>

error { NotFour, TooShort }
header h_t { bit<4> version; bit<4> length; bit<8> a; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.h);
        verify(hdr.h.version == 4, error.NotFour);
        verify(hdr.h.length >= 5, error.TooShort);
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply { hdr.h.a = 0x99; }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
