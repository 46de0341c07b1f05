// Controls within a control: each instance has its own arguments, registers and tables.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control count(inout bit<8> v, out bit<8> seen)(bit<8> by) {
    Register<bit<8>, bit<32>>(1) packets;
    action set(bit<8> to) { v = to; }
    table t { key = { v: exact; } actions = { set; NoAction; } }
    apply {
        t.apply();
        v = v + by;
        seen = packets.read(0) + 1;
        packets.write(0, seen);
    }
}

control plain(inout bit<8> v) { apply { v = v << 1 | (v & 8) >> 3; } }

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    count(1) ones;
    count(by = 10) tens;
    apply {
        ones.apply(hdr.h.a, hdr.h.c);
        tens.apply(v = hdr.h.b, seen = hdr.h.c);
        plain.apply(hdr.h.b);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
