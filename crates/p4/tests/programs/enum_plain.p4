// An enum without an underlying type has only its members as values.
#include <ubpf_model.p4>

enum Colour { Red, Green, Blue }
header h_t { bit<8> a; bit<8> result; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        Colour colour = Colour.Red;
        if (hdr.h.a == 1) colour = Colour.Green;
        if (hdr.h.a == 2) colour = Colour.Blue;
        switch (colour) {
            Colour.Green: { hdr.h.result = 0x10; }
            Colour.Red:
            Colour.Blue: { hdr.h.result = 0x20; }
        }
        if (colour != Colour.Red) hdr.h.result = hdr.h.result + 1;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
