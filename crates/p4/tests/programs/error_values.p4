// Errors are values: they are stored, compared and used in switch.
#include <ubpf_model.p4>

error { Odd, Two }
header h_t { bit<8> a; bit<8> result; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        error found = error.NoError;
        if (hdr.h.a[0:0] == 1) found = error.Odd;
        if (hdr.h.a == 2) found = error.Two;
        if (found == error.NoError) hdr.h.result = 0x80;
        switch (found) {
            error.Odd: { hdr.h.result = 1; }
            error.Two: { hdr.h.result = 2; }
            default: { hdr.h.result = hdr.h.result + 3; }
        }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
