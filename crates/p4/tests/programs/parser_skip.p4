// extract(_) skips a header, which is not emitted.
#include <ubpf_model.p4>

header h_t { bit<8> a; }
header skip_t { bit<16> a; bit<8> b; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract<skip_t>(_); p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply { hdr.h.a = 1; }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
