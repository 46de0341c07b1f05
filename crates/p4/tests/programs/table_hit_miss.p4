// hit and miss report if an entry matched, whatever its action.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> result; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action count() { hdr.h.result = hdr.h.result + 0x10; }
    table t { key = { hdr.h.a: exact; } actions = { count; NoAction; } }
    apply {
        if (t.apply().hit) hdr.h.result = hdr.h.result + 1;
        if (t.apply().miss) hdr.h.result = hdr.h.result + 2;
        if (!t.apply().hit) { hdr.h.result = hdr.h.result + 4; }
        bool hit = t.apply().hit;
        if (hit && t.apply().hit) hdr.h.result = hdr.h.result + 8;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
