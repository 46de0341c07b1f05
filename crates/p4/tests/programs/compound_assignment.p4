// Compound assignment: x op= y is x = x op y, also for slices and stack elements.
#include <ubpf_model.p4>

header h_t { bit<8> a; int<8> s; }
struct headers { h_t[2] all; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.all.next); p.extract(hdr.all.next); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.all[0].a += 0xf0;
        hdr.all[0].a[3:0] -= 1;
        hdr.all[0].s >>= 1;
        hdr.all[1].a |+|= 0xf0;
        hdr.all[1].a ^= 0x0f;
        bit<8> at = 0;
        hdr.all[at + 1].s |-|= 100;
        at |= 1;
        hdr.all[at].a &= 0xfe;
        at <<= 7;
        hdr.all[0].s |= (int<8>)at;
        hdr.all[0].a *= 2;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
