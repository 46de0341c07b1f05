// push_front and pop_front shift a stack: new elements are invalid, shifted-out elements are lost.
#include <ubpf_model.p4>

header h_t { bit<8> a; }
struct headers { h_t[3] all; h_t valid; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.all.next); p.extract(hdr.all.next); p.extract(hdr.all.next); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        if (hdr.all[0].a == 1) {
            hdr.all.push_front(1);
            hdr.all[0] = { 0x77 };
        } else if (hdr.all[0].a == 2) {
            hdr.all.pop_front(2);
        } else if (hdr.all[0].a == 3) {
            hdr.all.push_front(2);
        } else {
            hdr.all.pop_front(9);
        }
        hdr.valid = { (bit<8>)(hdr.all[0].isValid() ? 4w8 : 0)
            + (bit<8>)(hdr.all[1].isValid() ? 4w4 : 0) + (bit<8>)(hdr.all[2].isValid() ? 4w2 : 0) };
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
