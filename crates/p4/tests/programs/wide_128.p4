// All operators on numbers of 128 bits, the width of IPv6 addresses.
#include <ubpf_model.p4>

header h_t {
    bit<128> a;
    bit<128> b;
    bit<128> sum;
    bit<128> difference;
    bit<128> product;
    bit<128> left;
    bit<128> right;
    bit<128> exclusive;
    bit<4>   none;
    bit<1>   less;
    bit<1>   same;
    bit<1>   not_less;
    bit<1>   below_zero;
}
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.sum = hdr.h.a + hdr.h.b;
        hdr.h.difference = hdr.h.a - hdr.h.b;
        hdr.h.product = hdr.h.a * hdr.h.b;
        hdr.h.left = hdr.h.a << 68;
        hdr.h.right = hdr.h.a >> 68;
        hdr.h.exclusive = hdr.h.a ^ hdr.h.b;
        hdr.h.less = (bit<1>)(hdr.h.a < hdr.h.b);
        hdr.h.same = (bit<1>)(hdr.h.a == hdr.h.b);
        hdr.h.not_less = (bit<1>)(hdr.h.a >= hdr.h.b);
        hdr.h.below_zero = (bit<1>)((int<128>)hdr.h.a < 0);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
