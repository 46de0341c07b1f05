// Priorities of entries: explicit, or derived by priority_delta (section 14.2.1.4).
//
// The control plane inserts entries between them.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action set_b(bit<8> n) { hdr.h.b = n; }
    action set_c(bit<8> n) { hdr.h.c = n; }
    action set_d(bit<8> n) { hdr.h.d = n; }
    table most {
        key = { hdr.h.a: ternary; }
        actions = { set_b; NoAction; }
        priority_delta = 10;
        @noWarn("entries_out_of_priority_order")
        entries = {
            priority = 30: 0x01 &&& 0x01: set_b(1);
            0x02 &&& 0x02: set_b(2);
            0x08 &&& 0x08: set_b(3);
            const priority = 15: 0x04 &&& 0x04: set_b(4);
        }
    }
    table least {
        key = { hdr.h.a: ternary; }
        actions = { set_c; NoAction; }
        largest_priority_wins = false;
        entries = {
            priority = 5: 0x08 &&& 0x08: set_c(2);
            0x01 &&& 0x01: set_c(3);
            priority = 1: 0x04 &&& 0x04: set_c(1);
            0xf0 &&& 0xf0: set_c(4);
        }
    }
    table none {
        key = { hdr.h.a: ternary; }
        actions = { set_d; NoAction; }
        priority_delta = 100;
        entries = {
            0x08 &&& 0x08: set_d(0x11);
            _: set_d(0x22);
        }
    }
    apply {
        most.apply();
        least.apply();
        none.apply();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
