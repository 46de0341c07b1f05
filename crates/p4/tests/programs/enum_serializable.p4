// An enum with an underlying type is allowed in headers, and holds values without a name.
#include <ubpf_model.p4>

enum bit<16> Ether { IPV4 = 0x800, VLAN = 0x8100, IPV6 = 0x86dd }
header h_t { Ether kind; bit<16> copy; bit<8> result; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition select(hdr.h.kind) { Ether.IPV6: reject; default: accept; } }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.copy = hdr.h.kind;
        hdr.h.result = hdr.h.kind == Ether.IPV4 ? 8w1 : 2;
        if (hdr.h.kind == Ether.VLAN) hdr.h.kind = (Ether)16w0x1234;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
