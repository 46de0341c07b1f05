// Longest-prefix match, regardless of the order of insertion.
#include <ubpf_model.p4>

header h_t { bit<32> to; bit<8> via; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action via(bit<8> port) { hdr.h.via = port; }
    action drop() { mark_to_drop(); }
    table t { key = { hdr.h.to: lpm; } actions = { via; drop; } default_action = drop(); }
    apply { t.apply(); }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
