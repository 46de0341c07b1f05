// hash is lookup3 over the bytes of a value in wire order; a list is the concatenation of its elements.
#include <ubpf_model.p4>

header h_t { bit<32> a; bit<16> b; bit<8> c; bit<32> one; bit<32> list; bit<32> small; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hash(hdr.h.one, HashAlgorithm.lookup3, hdr.h.a);
        hash(hdr.h.list, HashAlgorithm.lookup3, { hdr.h.a, hdr.h.b, hdr.h.c });
        hash(hdr.h.small, HashAlgorithm.lookup3, hdr.h.c);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
