// A value set is empty until the control plane fills it; later cases still match.
#include <ubpf_model.p4>

header h_t { bit<16> type; bit<8> result; }
struct headers { h_t h; }
struct meta_t { bit<8> state; }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    value_set<bit<16>>(4) known;
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.type) {
            known: special;
            0x0800: four;
            default: other;
        }
    }
    state special { meta.state = 9; transition accept; }
    state four { meta.state = 1; transition accept; }
    state other { meta.state = 2; transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply { hdr.h.result = meta.state; }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
