// const entries: without priorities the first match wins, with lpm keys the longest prefix.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action mask(bit<8> n) { hdr.h.b = n; }
    action prefix(bit<8> n) { hdr.h.c = n; }
    action range(bit<8> n) { hdr.h.d = n; }
    table masks {
        key = { hdr.h.a: ternary; }
        actions = { mask; }
        default_action = mask(9);
        const entries = {
            0x10 &&& 0xf0: mask(1);
            0x05 &&& 0x0f: mask(2);
            _: mask(3);
        }
    }
    table prefixes {
        key = { hdr.h.a: lpm; }
        actions = { prefix; NoAction; }
        const entries = {
            0x00 &&& 0xc0: prefix(1);
            0x10 &&& 0xf0: prefix(2);
            0x12: prefix(3);
        }
    }
    table ranges {
        key = { hdr.h.a: range; hdr.h.b: exact; }
        actions = { range; }
        default_action = range(0x10);
        const entries = {
            (0x13 .. 0x1f, 1): range(0x11);
            (0x12, 1): range(0x12);
            (0x10 .. 0x1f, 1): range(0x13);
            (_, 3): range(0x14);
        }
    }
    apply {
        masks.apply();
        prefixes.apply();
        ranges.apply();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
