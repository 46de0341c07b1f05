// Lists are compared with tuples; {...} and ... are defaults of tuples and headers.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        tuple<bit<8>, bool> two = { hdr.h.a, hdr.h.b == 2 };
        bit<8> result = 0;
        if (two == { 1, true }) result[0:0] = 1;
        two = { ... };
        if (two == { 0, false }) result[1:1] = 1;
        two = { 3, ... };
        if (two == { 3, false }) result[2:2] = 1;
        h_t other = ...;
        if (!other.isValid()) result[3:3] = 1;
        other = { ... };
        if (other.isValid() && other == { 0, 0 }) result[4:4] = 1;
        hdr.h.b = result;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
