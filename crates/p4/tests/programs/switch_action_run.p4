// switch over action_run, for an entry or the default action; a label without a block falls through.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action one() { hdr.h.b = hdr.h.b + 1; }
    action two() { hdr.h.b = hdr.h.b + 2; }
    action three() { hdr.h.b = hdr.h.b + 3; }
    table t {
        key = { hdr.h.a: exact; }
        actions = { one; two; three; NoAction; }
        default_action = NoAction();
    }
    apply {
        switch (t.apply().action_run) {
            one: { hdr.h.b = hdr.h.b + 0x10; }
            two:
            three: { hdr.h.b = hdr.h.b + 0x20; }
            default: { hdr.h.b = hdr.h.b + 0x40; }
        }
        switch (t.apply().action_run) { NoAction: { hdr.h.b = hdr.h.b + 0x80; } }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
