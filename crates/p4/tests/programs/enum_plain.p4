// An enum without an underlying type has only its members as values.
#include <ubpf_model.p4>

enum Color { Red, Green, Blue }
header h_t { bit<8> a; bit<8> result; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        Color color = Color.Red;
        if (hdr.h.a == 1) color = Color.Green;
        if (hdr.h.a == 2) color = Color.Blue;
        switch (color) {
            Color.Green: { hdr.h.result = 0x10; }
            Color.Red:
            Color.Blue: { hdr.h.result = 0x20; }
        }
        if (color != Color.Red) hdr.h.result = hdr.h.result + 1;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
