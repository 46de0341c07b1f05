// lookahead returns the next number or header without consuming it.
#include <ubpf_model.p4>

header h_t { bit<8> kind; bit<8> value; }
header long_t { bit<8> kind; bit<24> value; }
struct headers { h_t seen; h_t short; long_t long; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        h_t ahead = p.lookahead<h_t>();
        hdr.seen = { ahead.value, ahead.kind };
        transition select(p.lookahead<bit<8>>()) {
            1: short;
            2: long;
        }
    }
    state short { p.extract(hdr.short); transition accept; }
    state long {
        hdr.seen.kind = p.lookahead<bit<24>>()[7:0];
        p.extract(hdr.long);
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply { }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
