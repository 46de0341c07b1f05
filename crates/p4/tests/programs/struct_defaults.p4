// ... gives missing fields their defaults: zeros, false, the first member, an invalid header.
#include <ubpf_model.p4>

enum Color { Red, Green }
enum bit<8> Kind { One = 1 }
header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> result; }
struct all_t { bit<8> number; bool flag; Color color; Kind kind; h_t h; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h = { 9, ... };
        all_t all = { number = 5, ... };
        hdr.h.b = all.number;
        if (all.color == Color.Red && !all.flag && !all.h.isValid() && all.kind == (Kind)0) {
            hdr.h.c = 1;
        }
        all_t none = ...;
        hdr.h.result = none.number + 2;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
