// typedef gives a type another name: both are the same type.
#include <ubpf_model.p4>

typedef bit<8> byte_t;
typedef byte_t other_t;
header h_t { byte_t a; other_t b; }
typedef h_t copy_t;
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply { bit<8> sum = hdr.h.a + hdr.h.b; copy_t copy = hdr.h; copy.a = sum; hdr.h = copy; }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
