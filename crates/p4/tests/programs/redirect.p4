// Output of a packet: the input port, another port, or none; the last assignment counts.
#include <ubpf_model.p4>

header h_t { bit<8> a; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        if (hdr.h.a == 1) {
            std.output_action = ubpf_action.REDIRECT;
            std.output_port = std.input_port + 1;
        } else if (hdr.h.a == 2) {
            mark_to_drop();
            hdr.h.a = std.output_action == ubpf_action.DROP ? 8w0x22 : 0;
            mark_to_pass();
        } else if (hdr.h.a == 3) {
            mark_to_pass();
            std.output_action = ubpf_action.DROP;
        } else if (hdr.h.a == 4) {
            std.output_action = ubpf_action.ABORT;
        } else if (hdr.h.a == 5) {
            std.output_port = 9;
        }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
