// A direct counter has one cell per entry of its table and one for the default action.
//
// Only actions that call count() change it.
#include <kaido.p4>

header h_t { bit<16> a; bit<8> b; bit<128> wide; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS_AND_BYTES) exact_count;
    DirectCounter<bit<32>>(PSA_CounterType_t.BYTES) prefix_count;
    DirectCounter<bit<8>>(PSA_CounterType_t.PACKETS) ternary_count;

    action set(bit<128> value, bit<8> b) {
        exact_count.count();
        hdr.h.wide = value;
        hdr.h.b = b;
    }
    action quiet() { }
    table by_value {
        key = { hdr.h.a: exact; }
        actions = { set; quiet; }
        default_action = quiet();
        psa_direct_counter = exact_count;
    }

    action add_b() { hdr.h.b = hdr.h.b + 1; prefix_count.count(); }
    action refuse() { add_b(); mark_to_drop(); }
    table by_prefix {
        key = { hdr.h.wide: lpm; }
        actions = { add_b; refuse; }
        // The default action is constant, but counted.
        const default_action = add_b();
        psa_direct_counter = prefix_count;
    }

    action twice() { ternary_count.count(); ternary_count.count(); }
    table by_bits {
        key = { hdr.h.b: ternary; hdr.h.a: range; }
        actions = { twice; quiet; }
        default_action = twice();
        entries = { (1 &&& 1, 0 .. 9): twice(); (_, 256 .. 257): quiet(); }
        psa_direct_counter = ternary_count;
    }
    apply {
        if (!by_value.apply().hit) {
            hdr.h.b = hdr.h.b + 4;
        }
        by_prefix.apply();
        by_bits.apply();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
