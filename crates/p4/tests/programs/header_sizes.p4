// Minimum and maximum sizes of types and values on the wire, in bits and bytes.
#include <ubpf_model.p4>

header short_t { bit<8> a; bit<4> b; bit<4> c; }
header long_t { bit<8> bytes; varbit<32> data; }
header_union either_t { short_t one; long_t other; }
header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> f; }
struct headers { h_t h; short_t short; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        either_t either;
        hdr.h.a = (bit<8>)hdr.short.minSizeInBits();
        hdr.h.b = (bit<8>)long_t.maxSizeInBytes();
        hdr.h.c = (bit<8>)long_t.minSizeInBits();
        hdr.h.d = either.minSizeInBits();
        hdr.h.e = either_t.maxSizeInBits();
        hdr.h.f = (bit<8>)short_t.minSizeInBytes() + short_t.maxSizeInBits();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
