// Headers are equal if both are invalid, or both are valid with equal fields.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers { h_t one; h_t two; h_t three; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.one); p.extract(hdr.two); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        h_t other;
        bit<8> result = 0;
        if (hdr.one == hdr.two) result[0:0] = 1;
        if (other == hdr.three) result[1:1] = 1;
        if (hdr.one == hdr.three) result[2:2] = 1;
        hdr.three.a = 9;
        if (other == hdr.three) result[3:3] = 1;
        if (hdr.one == { 1, 2 }) result[4:4] = 1;
        if (hdr.one != hdr.two) result[5:5] = 1;
        hdr.one = { result, 0 };
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
