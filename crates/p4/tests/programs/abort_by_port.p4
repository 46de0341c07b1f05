// A pipeline aborts a packet through output_action.
#include <ubpf_model.p4>

struct headers { }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        if (std.input_port == 3) std.output_action = ubpf_action.ABORT;
    }
}

control dprs(packet_out b, in headers hdr) { apply { } }

ubpf(prs(), c(), dprs()) main;
