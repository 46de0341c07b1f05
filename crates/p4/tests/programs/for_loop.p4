// for with a condition and several updates; break ends the inner loop, continue runs its updates.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> sum; bit<8> rounds; bit<8> pairs; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        for (bit<8> i = 0; i < hdr.h.a; i = i + 1) {
            if (i == 2) continue;
            if (i == 6) break;
            hdr.h.sum = hdr.h.sum + i;
            hdr.h.rounds = hdr.h.rounds + 1;
        }
        for (bit<8> i = 0, bit<8> j = 10; i < j; i = i + 3, j = j - 1) {
            for (bit<8> k = 0; k < 5; k += 1) {
                if (k == 2) break;
                hdr.h.pairs += 1;
            }
        }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
