// Digests send values to the control plane: numbers of any width, and structs of them.
#include <kaido.p4>

enum bit<4> Kind { One = 1, Two = 2 }
type bit<12> Port;
struct inner_t { bit<3> small; bool flag; }
struct seen_t { bit<48> address; Port port; inner_t inner; int<8> balance; bit<96> wide; Kind kind; }
header h_t { bit<48> address; bit<12> port; bit<3> small; bit<1> flag; int<8> balance; bit<96> wide; bit<8> way; }
struct headers { h_t h; }
struct meta_t { }

Digest<bit<8>>() ways;

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.h);
        ways.pack(hdr.h.way);
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    Digest<seen_t>() seen;
    action tell(Kind kind) {
        seen.pack({ hdr.h.address, (Port)hdr.h.port, { hdr.h.small, hdr.h.flag == 1 }, hdr.h.balance,
                    hdr.h.wide, kind });
    }
    apply {
        if (hdr.h.way > 1) tell(Kind.One);
        if (hdr.h.way > 2) { tell(Kind.Two); mark_to_drop(); }
    }
}

control dprs(packet_out b, in headers hdr) {
    Digest<tuple<bit<1>, bit<9>>>() odd;
    apply {
        if (hdr.h.flag == 1) odd.pack({ hdr.h.flag, 9w0x155 });
        b.emit(hdr);
    }
}

ubpf(prs(), c(), dprs()) main;
