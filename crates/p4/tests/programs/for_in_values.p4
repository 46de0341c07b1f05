// for over a list and over a stack iterates over the values from before the first iteration.
#include <ubpf_model.p4>

header h_t { bit<8> sum; bit<8> rounds; }
header byte_t { bit<8> a; }
struct headers { h_t h; byte_t[3] all; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); p.extract(hdr.all.next); p.extract(hdr.all.next); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        for (bit<8> one in { hdr.h.sum, 2, hdr.all[0].a }) {
            if (one == 2) continue;
            hdr.all[0].a = 0x77;
            hdr.h.sum = hdr.h.sum + one;
        }
        for (byte_t one in hdr.all) {
            if (!one.isValid()) break;
            hdr.h.rounds = hdr.h.rounds + 1;
            hdr.h.sum = hdr.h.sum + one.a;
            hdr.all[1].a = 0;
            one.a = 0xff;
        }
        for (bit<8> one in (list<bit<8>>){ 0x10, 0x20 }) { hdr.h.rounds = hdr.h.rounds + one; }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
