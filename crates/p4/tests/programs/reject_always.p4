// A parser that accepts no packet.
#include <ubpf_model.p4>

struct headers { }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { transition reject; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) { apply { } }

control dprs(packet_out b, in headers hdr) { apply { } }

ubpf(prs(), c(), dprs()) main;
