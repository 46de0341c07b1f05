// emit writes the valid headers of a stack, a struct or a union in order, at each call.
#include <ubpf_model.p4>

header h_t { bit<8> a; }
header two_t { bit<4> x; bit<12> y; }
struct inner_t { h_t one; two_t two; }
header_union u_t { h_t one; two_t two; }
struct headers { h_t[4] all; inner_t inner; u_t u; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.all.next); p.extract(hdr.all.next); p.extract(hdr.all.next); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.all[1].setInvalid();
        hdr.inner.two = { 5, 0x678 };
        hdr.u.two = { 9, 0xabc };
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); b.emit(hdr.all[0]); } }

ubpf(prs(), c(), dprs()) main;
