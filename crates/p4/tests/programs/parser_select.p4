// select takes the first matching case: values, masks, ranges, tuples; without a match the packet is rejected.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> result; }
struct headers { h_t h; }
struct meta_t { bit<8> state; }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.a) {
            1: one;
            0xf0 &&& 0xf0: two;
            0x10 .. 0x1f: three;
            0x30: pair;
            0: reject;
        }
    }
    state one { meta.state = 1; transition accept; }
    state two { meta.state = 2; transition accept; }
    state three { meta.state = 3; transition accept; }
    state pair {
        transition select(hdr.h.a, hdr.h.b[0:0]) {
            (0x30, 1): four;
            (_, 0): five;
        }
    }
    state four { meta.state = 4; transition accept; }
    state five { meta.state = 5; transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply { hdr.h.result = meta.state; }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
