// Counters count packets, input bytes, or both, by index.
//
// Counts wrap at their width; an index out of range is ignored.
#include <kaido.p4>

header h_t { bit<8> index; bit<8> way; }
struct headers { h_t h; h_t more; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control sub(in bit<8> index)(bit<32> size) {
    Counter<bit<64>, bit<8>>(size, PSA_CounterType_t.BYTES) inner;
    apply { inner.count(index); }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    Counter<bit<64>, bit<8>>(4, PSA_CounterType_t.PACKETS_AND_BYTES) both;
    Counter<bit<32>, bit<40>>(300, PSA_CounterType_t.PACKETS) packets;
    Counter<bit<2>, bit<8>>(2, PSA_CounterType_t.PACKETS_AND_BYTES) narrow;
    sub(3) first;
    sub(1) second;

    action all(bit<8> more) {
        both.count(hdr.h.index + more);
        packets.count((bit<40>)hdr.h.index << 1);
    }
    apply {
        all(0);
        narrow.count(hdr.h.index);
        if (hdr.h.way == 1) {
            first.apply(hdr.h.index);
            second.apply(0);
            // The output is longer; the length of the input counts.
            hdr.more = { 1, 2 };
            both.count(3);
        } else if (hdr.h.way == 2) {
            all(1);
            mark_to_drop();
        }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
