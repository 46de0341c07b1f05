// Constructor parameters are passed on to instances inside, also as computed values.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control inner(inout bit<8> v)(bit<8> n, bool turned) {
    apply {
        v = v + n;
        if (turned) v = ~v;
    }
}

control outer(inout bit<8> v)(bit<8> n, bool turned) {
    inner(n, false) same;
    inner(n + 1, turned) more;
    apply {
        same.apply(v);
        more.apply(v);
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    outer(3, false) three;
    outer(n = 4, turned = true) four;
    apply {
        three.apply(hdr.h.a);
        four.apply(hdr.h.b);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
