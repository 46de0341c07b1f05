// setValid and setInvalid decide if a header is emitted; a copy has the validity of its source.
#include <ubpf_model.p4>

header flags_t { bool one; bool two; bool three; bit<5> rest; }
header h_t { bit<8> a; }
struct headers { h_t one; h_t two; h_t three; flags_t flags; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.one); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        if (hdr.one.a == 1) hdr.two.setValid();
        if (hdr.one.a == 2) { hdr.one.setInvalid(); }
        if (hdr.one.a == 3) { hdr.two = hdr.one; hdr.two.a = 0x33; }
        if (hdr.one.a == 4) { hdr.two = { 0x44 }; hdr.two = hdr.three; }
        hdr.flags = { hdr.one.isValid(), hdr.two.isValid(), hdr.three.isValid(), 0 };
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
