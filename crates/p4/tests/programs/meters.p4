// Meters color packets by two rates, in packets or in bytes.
//
// A packet's present color is kept or becomes worse. A meter without rates, and an index out of range, limit
// nothing.
#include <kaido.p4>

header h_t { bit<8> index; bit<8> color; bit<8> by_packets; bit<8> by_bytes; bit<8> aware; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control number(in PSA_MeterColor_t color, out bit<8> result) {
    apply {
        switch (color) {
            PSA_MeterColor_t.RED: { result = 0xaa; }
            PSA_MeterColor_t.GREEN: { result = 0xbb; }
            default: { result = 0xcc; }
        }
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    Meter<bit<8>>(3, PSA_MeterType_t.PACKETS) packets;
    Meter<bit<64>>(3, PSA_MeterType_t.BYTES) bytes;
    Meter<bit<8>>(300, PSA_MeterType_t.BYTES) aware;
    number() first;
    number() second;
    number() third;

    apply {
        PSA_MeterColor_t before = PSA_MeterColor_t.GREEN;
        if (hdr.h.color == 1) before = PSA_MeterColor_t.YELLOW;
        if (hdr.h.color == 2) before = PSA_MeterColor_t.RED;
        first.apply(packets.execute(hdr.h.index), hdr.h.by_packets);
        second.apply(bytes.execute((bit<64>)hdr.h.index), hdr.h.by_bytes);
        third.apply(aware.execute(hdr.h.index, before), hdr.h.aware);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
