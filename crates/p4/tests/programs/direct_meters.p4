// A direct meter has one cell per entry of its table and one for the default action.
#include <kaido.p4>

header h_t { bit<8> who; bit<8> color; }
struct headers { h_t h; }
struct meta_t { PSA_MeterColor_t color; }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    DirectMeter(PSA_MeterType_t.PACKETS) meter;
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS) counter;
    DirectMeter(PSA_MeterType_t.BYTES) second;

    action ask() { meta.color = meter.execute(); counter.count(); }
    action worsen(bit<8> by) { meta.color = meter.execute(PSA_MeterColor_t.YELLOW); hdr.h.who = by; }
    table who {
        key = { hdr.h.who: exact; }
        actions = { ask; worsen; }
        default_action = ask();
        psa_direct_counter = counter;
        psa_direct_meter = meter;
    }
    action again() { meta.color = second.execute(meta.color); }
    table all {
        actions = { again; }
        const default_action = again();
        psa_direct_meter = second;
    }
    apply {
        who.apply();
        all.apply();
        if (meta.color == PSA_MeterColor_t.RED) mark_to_drop();
        else if (meta.color == PSA_MeterColor_t.YELLOW) hdr.h.color = 1;
        else hdr.h.color = 2;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
