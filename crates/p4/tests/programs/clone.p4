// A clone leaves through another port, also if the packet itself is dropped.
#include <ubpf_model.p4>

header h_t { bit<8> a; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.a = hdr.h.a + 0x10;
        std.clone = hdr.h.a[0:0] == 1;
        std.clone_port = 7;
        if (hdr.h.a[1:1] == 1) mark_to_drop();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
