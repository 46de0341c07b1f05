// The preprocessor: macros with and without arguments, conditions, and skipped sections.
#include <ubpf_model.p4>

#define BYTE bit<8>
#define TEN 10
#define TWICE(x) (2 * (x))
#define LARGER(x, y) \
    ((x) > (y) ? (x) : (y))
header h_t { BYTE a; BYTE b; BYTE c; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.a = LARGER(1 + 1, 4 - 1);
#if defined(TWICE) && TWICE(2) == 4 && !defined(NEVER)
        hdr.h.b = TWICE(hdr.h.b + 1);
#elif 1
        hdr.h.b = 0xe1;
#else
        this is not even read
#endif
#ifdef NEVER
        hdr.h.c = 0xe2;
#else
#ifndef BYTE
        hdr.h.c = 0xe3;
#endif
        hdr.h.c = TEN /* ten */ + /* and
        one more */ 1;
#endif
#undef TEN
#ifdef TEN
        hdr.h.c = 0xe4;
#endif
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
